/// The trace of one message of a topic. Layer: topic.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/message_trace.hpp>

#include "admission/turn_work.hpp"
#include "delivery/state/group_time.hpp"
#include "delivery/topic.hpp"
#include "delivery/tracing/group_trace.hpp"
#include "topic/runtime/topic_reads.hpp"

namespace lightq::broker {

/// A trace, before the deaths in it are worded for the protocol.
struct TracedMessage {
  protocol::MessageTrace trace = {};       ///< without groups
  std::vector<TracedInGroup> groups = {};  ///< at most protocol::MessageTrace::groups_max
};

/// Traces one message in several turns of its topic's loop: a topic may have many groups, and each of them
/// many consumers and due times. Reads the message, and changes nothing. Thread: the reactor's of the topic.
class MessageTracing {
 public:
  /// When to work on.
  enum class Then {
    done,       ///< never: take() has all
    next_turn,  ///< in a later turn
    readable,   ///< when TopicReads reports that the message can be read
  };
  /// The work of a turn, about a millisecond, in bytes of TurnWork. The groups are visited one by one, so a
  /// turn may do the work of one group more.
  static constexpr std::uint64_t work_max = 1 * limits::MiB;

  explicit MessageTracing(Offset offset, std::uint64_t turn_work_max = work_max)
      : offset_(offset), turn_work_max_(turn_work_max) {}

  /// Traces on. `clocks`: now. Requires: the same topic each time. Errors: invalid_request if the topic has
  /// had no such message yet; io_error if it cannot be read now.
  Result<Then> work(Topic& topic, TopicReads& reads, const ClockReading& clocks);
  /// Returns the trace. A group that was removed since its turn is part of it. Requires: it is done.
  [[nodiscard]] TracedMessage take() { return std::move(traced_); }
  /// Returns the work so far, as the length of a reply that takes as long to write.
  [[nodiscard]] std::uint64_t work_bytes() const { return work_ / TurnWork::answer_byte_written; }

 private:
  Result<bool> read_message(Topic& topic, TopicReads& reads);
  bool add_groups(Topic& topic, const ClockReading& clocks, std::uint64_t work_from);

  const Offset offset_;
  const std::uint64_t turn_work_max_;
  TracedMessage traced_;
  // The groups in traced_, only to be compared: some may be gone. A new one in the place of one of them is
  // left out, because it is as young as this trace.
  std::unordered_set<const ConsumerGroup*> visited_;
  std::uint64_t work_ = 0;  // in bytes of TurnWork
  bool has_message_ = false;
  bool is_readable_ = false;
};

}  // namespace lightq::broker
