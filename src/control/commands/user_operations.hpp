/// The operations on users and passwords. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/secret.hpp>
#include <lightq/protocol/control.hpp>

#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/new_passwords.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// The user that UserOperations::create makes.
struct NewUser {
  std::string name;
  Secret password;  ///< empty: the user has only `uid`
  bool is_admin = false;
  std::vector<protocol::TopicRight> rights;
  std::optional<std::uint32_t> uid;  ///< of the system user that needs no password on an ipc socket
};

/// Creates, deletes and lists users, and changes their passwords and rights. A change is complete when it is
/// durable and in force on every thread. The asker's permission was checked before each call. It is checked
/// again when a new password has been hashed; then the error is unauthorized_access. All changes have the
/// errors of the catalogue and the data plane. Thread: the control thread. Lifetime: the parts must outlive
/// it.
class UserOperations {
 public:
  struct Parts {
    Catalogue& catalogue;
    CommitQueue& commits;
    DataPlane& data_plane;
    const ReadyTopics& ready;
    const AskerRights& rights;
    NewPasswords& passwords;
    const OperationSettings& settings;
  };

  explicit UserOperations(Parts parts) : parts_(parts) {}

  /// Passes all users to the data plane. Call it before any topic starts.
  void bring_up();

  /// Errors: user_already_exists, limit_reached, busy.
  void create(const Asker& asker, NewUser user, const Done<void>& done);
  /// Errors: user_not_found.
  void remove(const std::string& name, const Done<void>& done);
  /// Gives a user a new password, which ends its tickets. Errors: user_not_found, busy.
  void set_password(const Asker& asker, const std::string& name, Secret password, const Done<void>& done);
  /// Gives a topic's own user a new password. `expected`: the name that this user must have; empty: any.
  /// Errors: those of ReadyTopics::find; invalid_request, busy.
  void set_topic_password(const Asker& asker, const TopicName& topic, const std::string& expected,
                          const Secret& password, const Done<void>& done);
  /// Adds rights on a pattern. Errors: user_not_found, limit_reached.
  void grant(const std::string& name, const protocol::TopicRight& right, const Done<void>& done);
  /// Removes rights on a pattern. Errors: user_not_found; invalid_request if the user has none of them.
  void revoke(const std::string& name, const protocol::TopicRight& right, const Done<void>& done);
  /// Returns all users by name, without their secrets.
  [[nodiscard]] std::vector<protocol::UserListing> list() const;

 private:
  [[nodiscard]] std::optional<Error> objection_to(const NewUser& user) const;
  void create_hashed(const NewUser& user, const std::string& argon2, const Done<void>& done);
  [[nodiscard]] Result<void> add_right(std::vector<protocol::TopicRight>& to,
                                       const protocol::TopicRight& right) const;
  [[nodiscard]] bool may_set_password(const Asker& asker, TopicId topic) const;
  void replace_credential(TopicId topic, const protocol::Credentials& user, const Enrolment& enrolment,
                          const Done<void>& done);
  void change_rights(const UserRecord& changed, const Done<void>& done);
  void put_in_force(const UserRecord& changed, const Done<void>& done);
  /// Waits until the change is durable, applies it on the data plane, then calls `done`.
  void bring_into_force(std::function<void(Done<void>)> apply, const Done<void>& done);

  const Parts parts_;
};

}  // namespace lightq::broker
