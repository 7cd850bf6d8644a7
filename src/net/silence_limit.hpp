/// Detects a peer that is silent for longer than the time that it announced. Layer: net.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "net/event_loop.hpp"

namespace lightq::broker {

/// Implements the time to live of a ZMTP 3.1 PING (RFC 37): a peer that sends nothing at all for that long
/// counts as dead. Uses one timer while a limit is set. Thread: the loop's.
class SilenceLimit {
 public:
  using Span = std::chrono::milliseconds;

  explicit SilenceLimit(EventLoop& loop) : loop_(loop) {}
  ~SilenceLimit() { stop(); }
  SilenceLimit(const SilenceLimit&) = delete;
  SilenceLimit& operator=(const SilenceLimit&) = delete;

  /// Sets the limit; zero removes it. Calls `is_dead` once the peer has sent nothing for that long. If
  /// `is_dead` returns false, the time begins again.
  void set(Span most, std::function<bool()> is_dead) {
    if (most == most_) return;
    stop();
    most_ = most;
    is_dead_ = std::move(is_dead);
    heard();
    if (most_ > Span(0)) arm();
  }
  /// Called when bytes have arrived from the peer.
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
