/// How long a peer may be silent, as it said itself. Layer: endpoint.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

/// The time to live of a ZMTP 3.1 PING (RFC 37): a peer that sends nothing at all for that long is dead. One
/// timer as long as there is a limit. The loop's thread.
class SilenceLimit {
 public:
  using Span = std::chrono::milliseconds;

  explicit SilenceLimit(EventLoop& loop) : loop_(loop) {}
  ~SilenceLimit() { stop(); }
  SilenceLimit(const SilenceLimit&) = delete;
  SilenceLimit& operator=(const SilenceLimit&) = delete;

  /// Sets the limit; zero: none. Once nothing has been heard for that long, `is_dead` is called: false makes
  /// it count as heard now.
  void set(Span most, std::function<bool()> is_dead) {
    if (most == most_) return;
    stop();
    most_ = most;
    is_dead_ = std::move(is_dead);
    heard();
    if (most_ > Span(0)) arm();
  }
  /// Called when something has come from the peer.
  void heard() {
    if (most_ > Span(0)) heard_ = EventLoop::Clock::now();
  }
  [[nodiscard]] Span most() const { return most_; }
  void stop() {
    loop_.cancel(std::exchange(timer_, 0));
    most_ = Span(0);
  }

 private:
  void arm() {
    timer_ = loop_.at(heard_ + most_, [this] { look(); });
  }
  void look() {
    timer_ = 0;
    if (EventLoop::Clock::now() - heard_ >= most_) {
      if (is_dead_()) return;
      heard();
    }
    arm();
  }

  EventLoop& loop_;
  Span most_{0};
  std::function<bool()> is_dead_;
  EventLoop::Clock::time_point heard_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace lightq::broker
