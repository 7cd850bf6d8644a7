/// Tells when a topic works next: its dispatches, its ticks and its stop. Layer: topic.
#pragma once

#include <cstdint>
#include <utility>

#include <lightq/base/types.hpp>

#include "log/elapsed.hpp"
#include "net/event_loop.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

class TopicRuntime;

/// Calls `tick` about every 100 ms for each topic that asked for it.
class TopicTicker {
 public:
  virtual ~TopicTicker() = default;
  virtual void tick_wanted(TopicRuntime& topic) = 0;
  /// Called after dispatches while dead messages of the topic wait for their transfer to another topic.
  virtual void letters_wait(TopicRuntime& /*topic*/) {}
};

/// Requests a topic's dispatches and ticks, and keeps the time of its last use. All parts of the topic share
/// it. Thread: the reactor's.
class TopicActivity {
 public:
  /// `dispatch`: its on_ready dispatches. `ticker` calls the ticks of `topic`. Lifetime: all of them outlive
  /// this.
  TopicActivity(ReactorContext& context, EventLoop::Source& dispatch, TopicRuntime& topic,
                TopicTicker& ticker)
      : context_(context), dispatch_(dispatch), topic_(topic), ticker_(ticker), last_used_(context.now()) {}

  /// Dispatches soon: in this turn of the loop or the next, after the present call.
  void want_dispatch() { context_.loop.call_soon(dispatch_); }
  /// Requests ticks until set_ticking(false).
  void want_ticks() {
    if (!std::exchange(ticking_, true)) ticker_.tick_wanted(topic_);
  }
  /// Called after a dispatch while dead messages wait for their transfer to another topic.
  void letters_wait() { ticker_.letters_wait(topic_); }
  /// Called at the end of a tick. `ticking`: another tick follows. Returns `ticking`.
  bool set_ticking(bool ticking) { return ticking_ = ticking; }

  /// Returns the wall time.
  [[nodiscard]] Timestamp now() const { return context_.now(); }
  /// Returns the time of a clock that is never set.
  [[nodiscard]] EventLoop::Clock::time_point steady_now() const { return context_.steady_now(); }
  /// Called with the time of a publication, a read or a dispatch.
  void used_at(Timestamp now) { last_used_ = now; }
  /// Returns the time of the last publication, read or dispatch. It is precise enough for work whose time
  /// does not matter to clients.
  [[nodiscard]] Timestamp last_used() const { return last_used_; }
  [[nodiscard]] bool was_used_within(std::int64_t us, Timestamp now) const {
    return !log::has_passed(last_used_, us, now);
  }

  /// Returns true if the topic accepts and dispatches nothing more.
  [[nodiscard]] bool is_stopping() const { return stopping_; }
  void begin_stop() { stopping_ = true; }

 private:
  ReactorContext& context_;
  EventLoop::Source& dispatch_;
  TopicRuntime& topic_;
  TopicTicker& ticker_;
  bool stopping_ = false;
  bool ticking_ = false;
  Timestamp last_used_;
};

}  // namespace lightq::broker
