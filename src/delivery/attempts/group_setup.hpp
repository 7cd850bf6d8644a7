/// The settings of a group with the topic that its dead messages go to. Layer: delivery.
#pragma once

#include <utility>

#include <lightq/base/types.hpp>
#include <lightq/protocol/group_control.hpp>

namespace lightq::broker {

/// The settings of a group, and the identity of its dead-letter topic. A topic that is created later under
/// the same name has another id, and is not meant. A plain value.
struct GroupSetup {
  protocol::GroupSettings settings;
  TopicId dead_letter_topic;  ///< the topic of that name when it was set; 0: none

  GroupSetup() = default;
  GroupSetup(protocol::GroupSettings of_group, TopicId target = {})
      : settings(std::move(of_group)), dead_letter_topic(target) {}
  friend bool operator==(const GroupSetup&, const GroupSetup&) = default;
};

/// Returns true if the settings are those of a group without any.
[[nodiscard]] inline bool is_default(const GroupSetup& setup) {
  return setup.settings == protocol::default_group_settings;
}

}  // namespace lightq::broker
