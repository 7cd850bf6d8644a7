/// Dispatches a topic's messages when there is a reason to. Layer: topic.
#include "topic/runtime/topic_dispatch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace lightq::broker {

TopicDispatch::~TopicDispatch() {
  parts_.context.loop.cancel_soon(*this);
  parts_.context.loop.cancel(retention_timer_);
  parts_.context.loop.cancel(group_timer_);
  parts_.context.loop.cancel(expiry_again_);
  parts_.context.wall_timers.cancel(expiry_timer_);
}

void TopicDispatch::on_ready() {
  parts_.activity.used_at(parts_.activity.now());
  published();
}

/// Passes the current wall time to delivery. The other work uses the time of the last publication, read or
/// dispatch, which is precise enough for it.
void TopicDispatch::published() {
  TopicActivity& activity = parts_.activity;
  if (activity.is_stopping()) return;
  const auto result = parts_.consumers.dispatch({.now = parts_.context.loop.call_time(),
                                                 .wall = parts_.context.call_clock.now(),
                                                 .delays = &parts_.context.latencies.delivery});
  if (result.more) activity.want_dispatch();
  if (result.dead_waiting) activity.letters_wait();
  if (parts_.held.take_soon() || result.progress) parts_.held.resume();
  const Offset first = parts_.topic.log().first_offset();
  if (parts_.store.write_behind(activity.last_used())) activity.want_dispatch();
  follow_drops(first);
  parts_.saves.after_dispatch(activity.last_used());
  arm_group_timer();
  if (parts_.topic.expiry().index() != nullptr) [[unlikely]]
    arm_expiry_timers();
  activity.want_ticks();
}

void TopicDispatch::follow_drops(Offset first) {
  if (parts_.topic.log().first_offset() <= first) return;
  note_dropped(parts_.topic);
  parts_.activity.want_dispatch();
}

/// Sets a timer for the next dispatch. It handles messages that were not acknowledged in time, were rejected
/// with a delay, or were unavailable; and a save that a command waits for.
void TopicDispatch::arm_group_timer() {
  const SteadyTime next = std::min(parts_.topic.next_timer(), parts_.saves.cursors().next_timer());
  if (next >= group_timer_at_) return;
  parts_.context.loop.cancel(group_timer_);
  group_timer_at_ = next;
  group_timer_ = parts_.context.loop.at(next, [this] {
    group_timer_at_ = never;
    on_ready();
  });
}

/// Sets timers for the next expiry, and for the next attempt if the last one has not found all.
void TopicDispatch::arm_expiry_timers() {
  const TopicExpiry& expiry = parts_.topic.expiry();
  WallTimers& wall_timers = parts_.context.wall_timers;
  EventLoop& loop = parts_.context.loop;
  const Timestamp wall = parts_.context.call_clock.now();
  // Messages that are due by now are found with the next attempt.
  if (const Timestamp due = expiry.next_due(); wall < due && due < expiry_due_) {
    wall_timers.cancel(expiry_timer_);
    expiry_due_ = due;
    expiry_timer_ = wall_timers.at(due, [this] {
      expiry_due_ = ExpiryTimes::nothing_due;
      expire();
    });
  }
  if (const SteadyTime again = expiry.next_timer(wall, loop.call_time()); again < expiry_again_at_) {
    loop.cancel(expiry_again_);
    expiry_again_at_ = again;
    expiry_again_ = loop.at(again, [this] {
      expiry_again_at_ = never;
      published();
    });
  }
}

/// Dispatches if messages have expired. Otherwise the topic stays as idle as it is.
void TopicDispatch::expire() {
  if (parts_.activity.is_stopping()) return;
  if (parts_.topic.expiry().next_due() <= parts_.context.call_clock.now()) return published();
  arm_expiry_timers();
}

void TopicDispatch::consumers_changed() {
  parts_.held.resume();  // a `direct` topic accepts messages only while a consumer is connected
  parts_.activity.want_dispatch();
  parts_.activity.want_ticks();
}

void TopicDispatch::arm_retention() {
  const auto retention_ms = parts_.topic.definition().settings.retention_ms;
  if (retention_ms == 0 || parts_.topic.log().stored_bytes() == 0) return;
  const auto wait = std::chrono::milliseconds(std::clamp<std::uint64_t>(retention_ms / 4, 1'000, 60'000));
  parts_.context.loop.cancel(retention_timer_);
  retention_timer_ =
      parts_.context.loop.at(EventLoop::Clock::now() + wait, [this] { parts_.activity.want_ticks(); });
}

}  // namespace lightq::broker
