/// Checks the credentials and the rights of the askers of operations. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "access/authenticator.hpp"
#include "access/group_scope.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/request_context.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Verifies the credentials of requests and checks rights. This is the only class that reads the passwords
/// of askers; the handler passes them on. Credentials are checked before existence: a client without correct
/// credentials receives the same error whether or not the topic exists. Each check calls `then` exactly once,
/// immediately or later, with the asker or the error to reply; never if the loop ends first. Thread: the
/// control thread. Lifetime: the catalogue and the authenticator must outlive it.
class Permissions {
 public:
  using Then = std::function<void(const Result<Asker>&)>;
  /// The right that a command needs on a topic or its groups. No right: any right is sufficient.
  struct Need {
    std::optional<protocol::Right> right;
    GroupScope scope = GroupScope::whole_topic();
  };
  /// Returns the right to manage a group or, with `group` empty, the whole topic.
  static Need to_manage(std::string_view group) {
    return {protocol::Right::manage, group.empty() ? GroupScope::whole_topic() : GroupScope::of(group)};
  }

  /// `admin_generation`: the generation of the administrator's tickets and keys.
  Permissions(const Catalogue& catalogue, Authenticator& authenticator, std::uint32_t admin_generation);
  Permissions(const Permissions&) = delete;
  Permissions& operator=(const Permissions&) = delete;

  /// Returns the rights of askers, for checks after a wait.
  [[nodiscard]] const AskerRights& rights() const { return rights_; }

  /// Permits the administrator and every user.
  void permit_user(protocol::Credentials given, const RequestContext& request, const Then& then);
  /// Permits the administrator and users that are administrators.
  void permit_admin(protocol::Credentials given, const RequestContext& request, const Then& then);
  /// Permits administrators, and the user of this name.
  void permit_admin_or(const std::string& user_id, protocol::Credentials given, const RequestContext& request,
                       const Then& then);
  /// Permits administrators, and users that may manage a topic of this name, whether or not it exists.
  void permit_manager(const TopicName& topic, protocol::Credentials given, const RequestContext& request,
                      const Then& then);
  /// Permits administrators, the topic's own user, users that have the needed right, and for the messages of
  /// an open topic every client. `as_admin`: the credentials are those of an administrator.
  void permit_topic(const TopicName& topic, const Need& need, protocol::Credentials given, bool as_admin,
                    const RequestContext& request, const Then& then);

 private:
  /// Permits the administrator and every user. `subject`: Asking::subject.
  void identify(protocol::Credentials given, const RequestContext& request, const std::string& subject,
                const Then& then);
  void identify_user(const UserRecord& user, protocol::Credentials given, const RequestContext& request,
                     const std::string& subject, const Then& then);
  void identify_topic_user(const TopicName& topic, protocol::Credentials given, const RequestContext& request,
                           const Then& then);
  void verify(const CredentialRecord* credential, protocol::Credentials given, const RequestContext& request,
              const std::string& subject, Authenticator::VerifyDone done);
  [[nodiscard]] const UserRecord* user_of_peer(const protocol::Credentials& given,
                                               const RequestContext& request) const;

  /// Returns the asker if it is the administrator, or if `may` returns true for the user. Otherwise returns
  /// the error that `refuse` returns for the user. An error stays as it is.
  template <typename May, typename Refuse>
  [[nodiscard]] Result<Asker> only_if(const Result<Asker>& asker, May may, Refuse refuse) const;
  [[nodiscard]] Error refusal(AuthOutcome outcome) const;
  [[nodiscard]] Error refusal_without_admin(const UserRecord& user) const;
  [[nodiscard]] Error refusal_without_right(const UserRecord& user, const Need& need,
                                            const std::string& topic) const;

  const Catalogue& catalogue_;
  Authenticator& authenticator_;
  const std::uint32_t admin_generation_;
  const AskerRights rights_;
};

}  // namespace lightq::broker
