/// A producer and one consumer of a group that treats each message by itself. Layer: bench support.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "support/session_stream.hpp"

namespace lightq::bench {

/// The consumer's way with messages. All zeros: it acknowledges each one.
struct GroupWork {
  /// Rejects the first delivery of one in this many messages, without a delay, and acknowledges the second.
  /// 0: rejects none.
  std::uint64_t rejects_one_of = 0;
  /// Settles each received batch by one call. Requires: `rejects_one_of` is 0 or 1.
  bool whole_batches = false;
  /// The consumer's group; empty: it has one of its own.
  std::string group = {};
  /// The delay of each message; 0: none is delayed.
  std::chrono::microseconds delay = {};
  /// A header of every message: its name and value. An empty name: none.
  std::string header_name = {};
  std::string header_value = {};

  /// Returns true if the consumer rejects the first delivery of this message.
  [[nodiscard]] bool rejects(std::uint64_t number) const {
    return rejects_one_of > 0 && number % rejects_one_of == 0;
  }
  /// One message of this many has its time of sending, if there is a delay.
  static constexpr std::uint64_t stamped_one_of = 64;
  /// Returns true if a message came before its delay had passed. `sent_ns`: 0: it has no time of sending.
  /// Times are of CLOCK_MONOTONIC, and the broker counts by the realtime clock. Its rate may differ by 0.05
  /// %.
  [[nodiscard]] bool is_early(std::uint64_t sent_ns, std::uint64_t received_ns) const {
    const auto delay_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(delay).count());
    return sent_ns != 0 && received_ns < sent_ns + delay_ns - delay_ns / 1'000;
  }
};

/// Runs the plan once: the producer sends as fast as it can, while the consumer settles each message by a
/// call of its own. The rate is that of finished messages, from the first receipt to the last
/// acknowledgement. Checks that each message arrives unaltered, is finished exactly once, and has the right
/// number of deliveries. Errors: as run_session_stream.
Result<StreamResult> run_group_stream(const SessionEnds& ends, const StreamPlan& plan, const GroupWork& work);

}  // namespace lightq::bench
