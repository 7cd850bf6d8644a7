/// The producers of a topic that wait for space. Layer: topic.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "delivery/topic.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// Resumes the producers that wait for space, plain ones and those over sessions. TopicRuntime owns it;
/// publishing, dispatch, commands and ticks call it. Invariant: `any()` is true while a producer waits.
/// Thread: the reactor's.
class WaitingProducers {
 public:
  using Clock = EventLoop::Clock;

  /// Lifetime: all parameters outlive this.
  WaitingProducers(Topic& topic, TopicProducers& producers, TopicEndpoints& endpoints,
                   TopicActivity& activity)
      : topic_(topic), producers_(producers), endpoints_(endpoints), activity_(activity) {}

  /// Called when a producer begins to wait.
  void hold() {
    if (!std::exchange(any_, true)) waits_since_ = Clock::now();
    topic_.set_producers_held(true);
    activity_.want_ticks();
  }
  /// Returns true if a producer may be waiting.
  [[nodiscard]] bool any() const { return any_; }
  /// Returns for how long a producer has waited so far, in milliseconds.
  [[nodiscard]] std::uint64_t waited_ms() const {
    const auto waited = any_ ? waited_ + (Clock::now() - waits_since_) : waited_;
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(waited).count());
  }
  /// Resumes waiting producers, as many as find space.
  void resume() {
    if (!any_) return;
    const bool inlets = endpoints_.resume_inlets();
    any_ = !producers_.resume() || !inlets;
    if (!any_) waited_ += Clock::now() - waits_since_;
    topic_.set_producers_held(any_);
    activity_.want_dispatch();  // dispatches the messages that they published
  }
  /// Resumes waiting producers in the next dispatch: calls no producer or consumer within this call.
  void resume_soon() {
    soon_ = true;
    activity_.want_dispatch();
  }
  /// Called by a dispatch. Returns true if resume_soon() was called since the last dispatch.
  [[nodiscard]] bool take_soon() { return std::exchange(soon_, false); }
  /// Called at each tick: keeps the connections of waiting plain producers alive.
  void tend() {
    constexpr std::uint64_t ticks_per_second = 10;
    if (any_) endpoints_.tend_held(++ticks_ % ticks_per_second == 0);
  }

 private:
  Topic& topic_;
  TopicProducers& producers_;
  TopicEndpoints& endpoints_;
  TopicActivity& activity_;
  bool any_ = false;
  bool soon_ = false;
  Clock::time_point waits_since_;  // while any_
  Clock::duration waited_{};       // before that
  std::uint64_t ticks_ = 0;        // while any_
};

}  // namespace lightq::broker
