/// What a topic was created as; the catalogue keeps it, a reactor brings it to life. Layer: delivery.
#pragma once

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::broker {

struct TopicDefinition {
  TopicId id;
  TopicName name;
  protocol::TopicSettings settings;
};

}  // namespace lightq::broker
