/// Looks up the present rights of an asker. Layer: control.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include <lightq/base/error.hpp>

#include "control/catalogue/catalogue.hpp"
#include "control/rights/asker.hpp"

namespace lightq::broker {

/// The work of comparing a name with the pattern of one right, as the length of a reply that takes as long to
/// write.
inline constexpr std::uint64_t pattern_work_bytes = 4;

/// Looks up an asker's rights in the catalogue. Operations use it to check again after a wait: meanwhile the
/// user may have been deleted, or may have a new password or fewer rights. It knows no passwords. Thread: the
/// control thread. Lifetime: the catalogue must outlive it.
class AskerRights {
 public:
  /// `refused` counts a refusal as a failed login.
  AskerRights(const Catalogue& catalogue, std::function<void()> refused)
      : catalogue_(catalogue), refused_(std::move(refused)) {}

  /// Returns the asker's record. Null: it is not a user, or the user was deleted or has a new password.
  [[nodiscard]] const UserRecord* user_of(const Asker& asker) const;
  /// Returns true if lists show the topic to the asker: it is an administrator, or has any right on the
  /// topic. `user`: user_of(asker).
  [[nodiscard]] static bool sees(const Asker& asker, const UserRecord* user, const std::string& topic) {
    return user == nullptr ? asker.is_administrator() : user->knows(topic);
  }
  /// Returns true if the asker is the administrator, or still a user that is an administrator.
  [[nodiscard]] bool is_admin(const Asker& asker) const;
  /// Returns true if the asker is the administrator, or still a user that may manage the topic. The topic
  /// need not exist.
  [[nodiscard]] bool manages(const Asker& asker, std::string_view topic) const;
  /// Returns true if the asker may manage this group of the topic: the administrator, the topic's own user,
  /// or still a user with the right on the topic or the group.
  [[nodiscard]] bool manages_group(const Asker& asker, std::string_view topic, std::string_view group) const {
    return may(asker, protocol::Right::manage, topic, GroupScope::of(group));
  }
  /// Returns the asker's present answers of `manages`, for use on any thread. They do not follow later
  /// changes.
  [[nodiscard]] std::function<bool(std::string_view topic)> managed_by(const Asker& asker) const;
  /// Returns true if the asker is the administrator, the topic's own user, or still a user that may produce
  /// to the topic. The topic need not exist.
  [[nodiscard]] bool produces(const Asker& asker, std::string_view topic) const {
    return may(asker, protocol::Right::produce, topic);
  }
  /// Returns the same for consuming from the whole topic.
  [[nodiscard]] bool consumes(const Asker& asker, std::string_view topic) const {
    return may(asker, protocol::Right::consume, topic);
  }
  /// Returns the error for an asker that lost its permission while it waited, and counts the refusal.
  [[nodiscard]] Error refusal() const;

 private:
  [[nodiscard]] bool may(const Asker& asker, protocol::Right right, std::string_view topic,
                         const GroupScope& scope = GroupScope::whole_topic()) const;

  const Catalogue& catalogue_;
  const std::function<void()> refused_;
};

}  // namespace lightq::broker
