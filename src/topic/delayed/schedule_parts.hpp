/// The objects that the parts of a topic's schedule share. Layer: topic.
#pragma once

#include <cstdint>

#include "delayed/schedule.hpp"
#include "delivery/delayed_room.hpp"
#include "delivery/producers/durable_producers.hpp"
#include "delivery/topic.hpp"
#include "net/event_loop.hpp"
#include "store/topic_store.hpp"
#include "topic/reactor_context.hpp"
#include "topic/runtime/state_owners.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/runtime/topic_publishing.hpp"
#include "topic/runtime/topic_schedule.hpp"

namespace lightq::broker {

/// A schedule, and the objects that belong to it. Lifetime: outlives the parts that refer to it. Thread: the
/// reactor's.
struct ScheduleParts {
  const ScheduleOwner& owner;
  Schedule& schedule;
  TopicStore* store;  ///< the schedule's own; null: in memory
  DurableProducers& known;
  TopicProducers& producers;
  std::uint64_t incarnation = 0;

  /// Passes the schedule's bytes on to the topic: both share its capacity.
  void count_bytes() const { DelayedRoom(owner.topic).set_bytes(schedule.charged_bytes()); }
  /// Starts the sync that was requested.
  void start_flush() const {
    if (store == nullptr) return;
    store->request_flush(store->next_offset());
    store->start_work(owner.activity.last_used());
  }
  [[nodiscard]] LogEnds ends() const {
    if (store != nullptr) return LogEnds::of(*store);
    return {{schedule.next_number()}, {0}};
  }
};

}  // namespace lightq::broker
