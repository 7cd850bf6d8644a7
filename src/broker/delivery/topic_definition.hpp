/// What a topic was created as, and what outlasts its life on a reactor; the catalogue keeps it, a reactor
/// brings it to life. Layer: delivery.
#pragma once

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::broker {

struct TopicDefinition {
  TopicId id;
  TopicName name;
  protocol::TopicSettings settings;
  bool paused = false;  ///< it begins so
};

}  // namespace lightq::broker
