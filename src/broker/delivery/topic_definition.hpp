/// What a topic was created as, and what outlasts its life on a reactor; the catalogue keeps it, a reactor
/// brings it to life. Layer: delivery.
#pragma once

#include <cstdint>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::broker {

struct TopicDefinition {
  TopicId id;
  TopicName name;
  protocol::TopicSettings settings;
  bool paused = false;       ///< it begins so
  std::uint32_t log_id = 0;  ///< of an encrypted topic: the upper half of its log's incarnation; 0: not known
};

}  // namespace lightq::broker
