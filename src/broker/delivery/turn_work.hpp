/// Counts work that is not in proportion to the bytes sent for it. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// Bytes that this thread has unpacked, or passed over in search of a record, since it began. What a turn has
/// cost is the difference of two readings: each turn bounds it, so that others get theirs.
class TurnWork {
 public:
  // About what each takes, in bytes unpacked in the same time.
  static constexpr std::uint64_t record_passed = 8;
  static constexpr std::uint64_t batch_passed = 64;
  static constexpr std::uint64_t batch_looked_at = 1024;
  static constexpr std::uint64_t range_passed = 32;
  static constexpr std::uint64_t member_visited = 64;
  static constexpr std::uint64_t segment_passed = 4;
  static constexpr std::uint64_t frame_taken = 32;
  static constexpr std::uint64_t command_taken = 128;           // of ZeroMQ
  static constexpr std::uint64_t refusal_made = 2 * 1024;       // an answer that says why
  static constexpr std::uint64_t session_request = 4 * 1024;    // what is asked over a session
  static constexpr std::uint64_t control_request = 8 * 1024;    // JSON, and its answer
  static constexpr std::uint64_t answer_byte_written = 32;      // of JSON
  static constexpr std::uint64_t task_run = 1024;               // that another thread has posted
  static constexpr std::uint64_t endpoint_opened = 384 * 1024;  // a socket that is made, bound and watched

  static void add(std::uint64_t bytes) { bytes_ += bytes; }
  [[nodiscard]] static std::uint64_t bytes() { return bytes_; }
  /// A turn of the event loop begins.
  static void begin_turn() { turn_from_ = bytes_; }
  /// Since then.
  [[nodiscard]] static std::uint64_t in_turn() { return bytes_ - turn_from_; }

 private:
  inline static thread_local std::uint64_t bytes_ = 0;
  inline static thread_local std::uint64_t turn_from_ = 0;
};

}  // namespace lightq::broker
