/// When a producer that sends much looks around, and lets others run. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <lightq/base/limits.hpp>
#include <lightq/session_clock.hpp>

namespace lightq::inline v1 {

/// Counts messages, bytes and time. One thread.
class ProducerPace {
 public:
  /// A message was taken. True: it is time to look for confirms, and to send.
  bool message_taken() { return --look_after_ == 0; }
  /// That is done now.
  void look() { look_after_ = messages_max; }
  /// The next time is after so many messages more as there are in the batch that was begun: at once when it
  /// is begun, then ever later, since a look is a system call.
  void look_again_behind(std::uint32_t messages) {
    look_after_ = std::clamp<std::uint32_t>(messages, 1, messages_max);
  }

  /// Whether it is long enough since confirms were looked for, for who does so by the way.
  [[nodiscard]] bool may_read(SessionTime now) const { return now >= read_ + read_interval; }
  void reads(SessionTime now) { read_ = now; }

  /// So many bytes were closed into a batch.
  void closed(std::size_t bytes) { run_bytes_ += bytes; }
  /// The producer has waited for something.
  void waited() { run_bytes_ = 0; }
  /// Lets others run that want this processor, from time to time.
  void give_way(SessionTime now) {
    if (run_bytes_ == 0) run_begins_ = now;
    if (run_bytes_ < run_bytes_max || now < run_begins_ + run_time_max) return;
    std::this_thread::yield();
    run_bytes_ = 0;
  }

 private:
  // How many messages at most go by before it looks.
  static constexpr std::uint32_t messages_max = 64;
  // Flat out, each message would bring a look, at a third of a microsecond; and a broker that shares this
  // processor would be woken for each handful of them, confirm it, and be woken for the next.
  static constexpr std::chrono::microseconds read_interval{25};
  // Who sends for so long, and so much, without ever waiting may stand in the way of the broker, or of a
  // consumer: systems let it until their next tick, which is up to 10 ms.
  static constexpr std::chrono::microseconds run_time_max{300};
  static constexpr std::size_t run_bytes_max = 128 * limits::KiB;

  std::uint32_t look_after_ = 1;  // messages
  SessionTime read_{};
  SessionTime run_begins_{};   // since it waited last, or gave way
  std::size_t run_bytes_ = 0;  // closed into batches since then
};

}  // namespace lightq::inline v1
