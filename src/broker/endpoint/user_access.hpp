/// What a user may do with topics. Layer: endpoint.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/topic_pattern.hpp>

#include "broker/endpoint/group_scope.hpp"

namespace lightq::broker {

/// The part of a user that those need who look at its rights. Plain data.
struct UserAccess {
  std::uint64_t id = 0;          ///< never used again
  std::uint32_t generation = 1;  ///< one more with each new password: tickets of the one before end
  bool is_admin = false;         ///< may do everything
  std::vector<protocol::TopicRight> rights;

  [[nodiscard]] bool may(protocol::Right right, std::string_view topic,
                         const GroupScope& scope = GroupScope::whole_topic()) const {
    return is_admin || std::ranges::any_of(rights, [&](const protocol::TopicRight& each) {
             return each.rights.has(right) && is_on(each, topic, scope);
           });
  }
  /// Has any right on the topic, or on a group of it.
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
