/// Counts work that is not proportional to the bytes sent. Layer: admission.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// A thread's count of bytes decompressed or skipped, with other work converted to bytes. The cost of an
/// activity is the difference of two readings.
/// Each turn bounds this cost, so that every connection and topic gets its share.
class TurnWork {
 public:
  // Rough costs, in bytes that could be decompressed in the same time.
  static constexpr std::uint64_t record_passed = 8;
  static constexpr std::uint64_t batch_passed = 64;
  static constexpr std::uint64_t batch_looked_at = 1024;
  static constexpr std::uint64_t range_passed = 32;
  static constexpr std::uint64_t set_changed =
      256;  // a range that is added to or removed from a set of offsets
  static constexpr std::uint64_t member_visited = 64;
  static constexpr std::uint64_t segment_passed = 4;
  static constexpr std::uint64_t frame_taken = 32;
  static constexpr std::uint64_t command_taken = 128;           // a ZeroMQ command
  static constexpr std::uint64_t refusal_made = 2 * 1024;       // a reply with an error text
  static constexpr std::uint64_t session_request = 4 * 1024;    // a request over a session
  static constexpr std::uint64_t control_request = 8 * 1024;    // a JSON request and its reply
  static constexpr std::uint64_t answer_byte_written = 32;      // a byte of JSON
  static constexpr std::uint64_t task_run = 1024;               // a task posted by another thread
  static constexpr std::uint64_t endpoint_opened = 384 * 1024;  // a socket that is created, bound and watched

  static void add(std::uint64_t bytes) { bytes_ += bytes; }
  [[nodiscard]] static std::uint64_t bytes() { return bytes_; }
  /// Marks the start of a turn of the event loop.
  static void begin_turn() { turn_from_ = bytes_; }
  /// Returns the work since begin_turn().
  [[nodiscard]] static std::uint64_t in_turn() { return bytes_ - turn_from_; }

 private:
  inline static thread_local std::uint64_t bytes_ = 0;
  inline static thread_local std::uint64_t turn_from_ = 0;
};

}  // namespace lightq::broker
