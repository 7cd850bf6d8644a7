/// Dispatches a topic's messages when there is a reason to. Layer: topic.
#pragma once

#include "delivery/topic.hpp"
#include "net/event_loop.hpp"
#include "net/timers/wall_timers.hpp"
#include "store/topic_store.hpp"
#include "topic/reactor_context.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_consumers.hpp"
#include "topic/runtime/topic_saves.hpp"
#include "topic/runtime/waiting_producers.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// Dispatches after publications, when the event loop calls it, when plain consumers change or become
/// writable, and at the time that delivery asks for. Afterwards it starts the work of the store that is due.
/// TopicRuntime owns it; publishing, endpoints and the event loop call it. Thread: the reactor's.
class TopicDispatch final : public EventLoop::Source, public EndpointsListener {
 public:
  /// Lifetime: all of them outlive this.
  struct Parts {
    ReactorContext& context;
    Topic& topic;
    TopicStore& store;
    TopicConsumers& consumers;
    WaitingProducers& held;
    TopicSaves& saves;
    TopicActivity& activity;
  };

  explicit TopicDispatch(const Parts& parts) : parts_(parts) {}
  ~TopicDispatch() override;

  void on_ready() override;
  /// Dispatches the messages that have been published.
  void published();
  /// Sets a timer that asks for a tick, so that old messages are removed even if nothing else happens.
  void arm_retention();
  /// Called after the log's upkeep. `first`: the log's first offset before. If the log has dropped messages,
  /// the groups learn of it now, and a dispatch follows: a consumer may have waited for one of them.
  void follow_drops(Offset first);

  // Implements EndpointsListener.
  void consumers_changed() override;
  void consumers_writable() override { on_ready(); }

 private:
  void arm_group_timer();
  void arm_expiry_timers();
  void expire();

  const Parts parts_;
  SteadyTime group_timer_at_ = never;
  EventLoop::TimerId group_timer_ = 0;
  Timestamp expiry_due_ = ExpiryTimes::nothing_due;  // of expiry_timer_
  WallTimers::TimerId expiry_timer_ = 0;
  SteadyTime expiry_again_at_ = never;
  EventLoop::TimerId expiry_again_ = 0;
  EventLoop::TimerId retention_timer_ = 0;
};

}  // namespace lightq::broker
