/// Finds dead messages by their keys, which the topic's log has. Layer: topic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>

#include "topic/runtime/topic_reads.hpp"

namespace lightq::broker {

/// The messages that a search has found by their key.
struct KeyedMessages {
  std::vector<OffsetRange> ranges;  ///< ascending, and not adjacent
  std::uint64_t unreadable = 0;     ///< messages that are damaged, or could not be read now
  std::optional<Offset> next;       ///< the first message that was not examined; nothing: all were
  bool is_pending = false;          ///< `next` cannot be read before the store reports it
};

/// Reads messages of `ranges`, in order, and returns those with exactly this key. An empty key means messages
/// without a key. Ends when it has found `most`, or after about a millisecond: after 256 messages or a MiB of
/// batches, but at least one message unless that is pending. Does not block: see TopicReads.
/// Requires: the ranges ascend; most > 0. Thread: the reactor's.
KeyedMessages messages_with_key(TopicReads& reads, std::span<const OffsetRange> ranges, std::string_view key,
                                std::uint64_t most);

}  // namespace lightq::broker
