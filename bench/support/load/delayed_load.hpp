/// Numbered messages that wait in a topic's schedule, and the times at which they arrive. Layer: bench
/// support.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "support/once_check.hpp"
#include "support/session_stream.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {

/// Returns the system's realtime clock, in microseconds since 1970.
std::int64_t wall_us();

/// Due times of numbered messages, spread evenly over a time.
struct DueTimes {
  std::int64_t first_us = 0;   ///< the first one, in microseconds since 1970
  std::int64_t spread_us = 0;  ///< the time from the first one to the last; 0: all are due at once
  std::uint64_t count = 0;     ///< of messages; not a multiple of `stride`
  bool scattered = true;       ///< their order is not that of the numbers

  static constexpr std::uint64_t stride = 7'368'787;  // a prime number

  [[nodiscard]] std::int64_t of(std::uint64_t number) const {
    const std::uint64_t rank = scattered ? number * stride % count : number;
    return first_us + static_cast<std::int64_t>(static_cast<std::uint64_t>(spread_us) * rank / count);
  }
};

/// The time between a message's due time and an event, over all messages.
struct Lateness {
  std::vector<double> appended_ms;  ///< until the broker's append time in the topic's log
  std::vector<double> received_ms;  ///< until the consumer had it
};

/// The records of one load: the messages that were published and received. Publish and receive run in child
/// processes, one call after the other, also at another broker process with the same data. Messages have the
/// pattern of test_message.hpp. Thread: one.
class DelayedLoad {
 public:
  using DueOf = std::function<std::int64_t(std::uint64_t)>;

  DelayedLoad(std::uint64_t count, std::size_t message_bytes);

  /// Publishes messages `begin` up to and without `end` to the schedule of the topic, in the order of their
  /// numbers. Returns when all are confirmed. `due`: of a number, in microseconds since 1970.
  Result<void> publish(const SessionEnds& ends, std::uint64_t begin, std::uint64_t end, const DueOf& due);
  /// Receives `count` more messages as a member of a group, and acknowledges them. Checks that each is
  /// unaltered and comes once. `wait_max`: the longest time in which nothing comes.
  Result<void> receive(const SessionEnds& ends, std::uint64_t count, std::chrono::milliseconds wait_max);
  /// Opens a consumer, publishes all messages, and receives them. Error also: they were not confirmed before
  /// the first one was due.
  Result<void> run(const SessionEnds& ends, const DueTimes& due, std::chrono::milliseconds wait_max);

  [[nodiscard]] std::uint64_t received() { return check_.finished(); }
  /// Returns the lateness of the messages that were received. Error: one was appended or received before it
  /// was due.
  Result<Lateness> lateness(const DueOf& due);
  /// Returns the last time at which a message was received, in microseconds since 1970; 0: none was.
  [[nodiscard]] std::int64_t last_received_us();

  // For the self-check.
  void note(std::uint64_t number, std::int64_t appended_us, std::int64_t received_us);

 private:
  int publish_all(const SessionEnds& ends, std::uint64_t begin, std::uint64_t end, const DueOf& due);
  int receive_all(const SessionEnds& ends, std::uint64_t wanted, std::chrono::milliseconds wait_max);
  Result<void> run_roles(const std::vector<std::function<int()>>& roles);

  StreamRun stream_;
  OnceCheck check_;
  SharedArray<std::int64_t> appended_us_;  // by number; 0: not received
  SharedArray<std::int64_t> received_us_;  // by number
};

}  // namespace lightq::bench
