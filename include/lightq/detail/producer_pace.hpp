/// Decides when a busy producer reads confirms, and when it yields the processor. Layer: client.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>
#include <lightq/detail/session_clock.hpp>

namespace lightq::inline v1 {

/// Counts a producer's messages, bytes and time between two looks at its connection. Owned by a Producer and
/// used on its thread.
class ProducerPace {
 public:
  /// Counts a message that send has accepted. Returns true if the producer should read confirms and send now.
  bool message_taken() { return --look_after_ == 0; }
  /// Restarts the count; called when the producer reads confirms and sends.
  void look() { look_after_ = messages_max; }
  /// Sets the number of messages until the next look to `messages`, the number in the open batch. Looks are
  /// frequent after a batch is begun and become rarer as it grows, because each one is a system call.
  void look_again_behind(std::uint32_t messages) {
    look_after_ = std::clamp<std::uint32_t>(messages, 1, messages_max);
  }

  /// Returns true if the last look for confirms was long enough ago. For calls that look only in passing.
  [[nodiscard]] bool may_read(SessionTime now) const { return now >= read_ + read_interval; }
  void reads(SessionTime now) { read_ = now; }

  /// Counts the bytes of a batch that was closed.
  void closed(std::size_t bytes) { run_bytes_ += bytes; }
  /// Records that the producer has waited, which restarts the measurement of its run.
  void waited() { run_bytes_ = 0; }
  /// Yields the processor after a long run without waiting, so that other threads can use it.
  void give_way(SessionTime now) {
    if (run_bytes_ == 0) run_begins_ = now;
    if (run_bytes_ < run_bytes_max || now < run_begins_ + run_time_max) return;
    (void)::sched_yield();
    run_bytes_ = 0;
  }

 private:
  // The most messages between two looks.
  static constexpr std::uint32_t messages_max = 64;
  // At full speed each message would cause a look, at a third of a microsecond. A broker on the same
  // processor would then be woken for every few messages, confirm them, and be woken again.
  static constexpr std::chrono::microseconds read_interval{25};
  // A producer that sends this long and this much without waiting can keep the broker or a consumer off its
  // processor. The system lets it run until the next scheduler tick, which is up to 10 ms away.
  static constexpr std::chrono::microseconds run_time_max{300};
  static constexpr std::size_t run_bytes_max = 128 * limits::KiB;

  std::uint32_t look_after_ = 1;  // messages
  SessionTime read_{};
  SessionTime run_begins_{};   // since the last wait or yield
  std::size_t run_bytes_ = 0;  // closed into batches since then
};

}  // namespace lightq::inline v1
