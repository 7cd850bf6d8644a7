/// Acknowledgements, rejections and extensions of consumers over sessions. Layer: topic.
#pragma once

#include "delivery/consumer_group.hpp"
#include "delivery/session_consumer.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Passes `change` the consumer's group and its member there, and dispatches soon. If `change` returns false,
/// the consumer ends in the next dispatch: its messages in flight are in too many ranges. Has no effect if
/// the consumer is not attached, because it was ended a moment ago. Thread: the reactor's.
template <typename Change>
void change_in_flight(TopicRuntime& topic, SessionConsumer& consumer, Change&& change) {
  const auto [group, member] = consumer.membership();
  if (group == nullptr) return;
  topic.want_dispatch();
  if (!change(*group, *member)) topic.consumers().end_in_pieces(consumer);
}

/// Acknowledges messages. Calls SessionConsumer::late within this call for those that it acknowledged too
/// late.
inline void acknowledge(TopicRuntime& topic, SessionConsumer& consumer, const Ack& acknowledged) {
  change_in_flight(topic, consumer, [&](ConsumerGroup& group, GroupMember& member) {
    return group.acknowledge(member, acknowledged);
  });
}

inline void reject(TopicRuntime& topic, SessionConsumer& consumer, const Rejection& rejected,
                   SteadyTime now) {
  change_in_flight(topic, consumer, [&](ConsumerGroup& group, GroupMember& member) {
    const Timestamp wall = rejected.kind == RejectKind::dead ? topic.consumers().now() : Timestamp{};
    return group.reject(member, rejected, now, wall);
  });
}

inline void extend(TopicRuntime& topic, SessionConsumer& consumer, const Extension& extended,
                   SteadyTime now) {
  change_in_flight(topic, consumer, [&](ConsumerGroup& group, GroupMember& member) {
    return group.extend(member, extended, now);
  });
}

inline void start(TopicRuntime& topic, SessionConsumer& consumer, const Start& started, SteadyTime now) {
  change_in_flight(topic, consumer, [&](ConsumerGroup& group, GroupMember& member) {
    return group.start(member, started, now);
  });
}

}  // namespace lightq::broker
