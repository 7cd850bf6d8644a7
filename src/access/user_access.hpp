/// The rights of a user on topics and groups. Layer: access. docs/protocol.md, "Users".
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/topic_pattern.hpp>

#include "access/group_scope.hpp"

namespace lightq::broker {

/// A user's number, password generation and rights, as access checks need them. Plain data.
struct UserAccess {
  std::uint64_t id = 0;          ///< never assigned to another user
  std::uint32_t generation = 1;  ///< grows with each new password and makes earlier tickets invalid
  bool is_admin = false;         ///< may do everything
  std::vector<protocol::TopicRight> rights;

  /// Returns true if the user has `right` on the topic, in this scope of groups.
  [[nodiscard]] bool may(protocol::Right right, std::string_view topic,
                         const GroupScope& scope = GroupScope::whole_topic()) const {
    return is_admin || std::ranges::any_of(rights, [&](const protocol::TopicRight& each) {
             return each.rights.has(right) && is_on(each, topic, scope);
           });
  }
  /// Returns true if the user has any right on the topic or on one of its groups.
  [[nodiscard]] bool knows(std::string_view topic) const {
    return is_admin || std::ranges::any_of(rights, [&](const protocol::TopicRight& each) {
             return is_on(each, topic, GroupScope::some_group());
           });
  }

 private:
  static bool is_on(const protocol::TopicRight& right, std::string_view topic, const GroupScope& scope) {
    const auto pattern = protocol::split_right_pattern(right.topic);
    return protocol::fits_pattern(topic, pattern.topic) && scope.fits(pattern.group);
  }
};

}  // namespace lightq::broker
