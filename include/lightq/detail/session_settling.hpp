/// Settles the messages that a consumer on a session received. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/detail/hand_outs.hpp>
#include <lightq/detail/offset_ranges.hpp>
#include <lightq/detail/session_unsettled.hpp>

namespace lightq::inline v1 {

/// The part of a consumer's channel that an acknowledgement changes. Owned by SessionDeliveries; the
/// consumer calls it directly, without the rest of the channel. For one thread.
struct SessionSettling {
  /// The most ranges that `revoked` and `late` have.
  static constexpr std::size_t ranges_max = 4096;

  SessionUnsettled unsettled;
  HandOutRanges acknowledged;               // acknowledgements to send
  SessionAmount back;                       // credit to give
  std::uint64_t acknowledged_messages = 0;  // since the consumer was made
  HandOut newest = 0;                       // the hand-out of the last batch
  OffsetRanges revoked;                     // the program has them, and the broker has taken them back
  OffsetRanges late;                        // acknowledged too late, and not reported to the program yet
  std::uint64_t late_messages = 0;          // since the consumer was made

  /// Acknowledges messages. Returns how many of them were in flight to this consumer.
  std::uint64_t acknowledge(OffsetRange range) {
    if (!revoked.empty()) [[unlikely]]
      return acknowledge_but_revoked(range);
    return acknowledge_part(range);
  }
  /// Acknowledges the message at `offset` if it is in flight since this hand-out. Returns 1 if so, else 0.
  std::uint64_t acknowledge(Offset offset, HandOut hand_out) {
    const OffsetRange one{offset, offset + 1};
    // A message of the newest hand-out is not in flight since another one.
    if (hand_out == newest || unsettled.holds(offset, hand_out)) return acknowledge(one);
    were_late(revoked.take(one));
    return 0;
  }

  /// Removes the messages of `range` from those in flight whose hand-out came before `before`. Returns how
  /// many. `is_known`: the program may have them, so that an acknowledgement is late.
  std::uint64_t revoke(OffsetRange range, HandOut before, bool is_known) {
    std::vector<OffsetRange> parts;
    unsettled.for_each_in(range, [&](OffsetRange part, HandOut hand_out) {
      if (hand_out < before) parts.push_back(part);
    });
    std::uint64_t messages = 0;
    for (const OffsetRange& part : parts) {
      const SessionAmount settled = unsettled.settle(part, [](const OffsetRange&) {});
      messages += settled.messages;
      back += settled;
      if (is_known && revoked.size() < ranges_max) revoked.add(part);
    }
    return messages;
  }
  /// Records messages that were acknowledged too late.
  void were_late(const OffsetRanges& ranges) {
    for (const OffsetRange& range : ranges.all()) was_late(range);
  }
  void was_late(OffsetRange range) {
    late_messages += distance(range.begin, range.end);
    if (late.size() < ranges_max) late.add(range);
  }

 private:
  /// Acknowledges the messages of `range` that the broker has not taken back. The others are late, even if
  /// they were delivered again since: the program has not received them again.
  [[gnu::noinline]] std::uint64_t acknowledge_but_revoked(OffsetRange range) {
    const OffsetRanges gone = revoked.take(range);
    std::uint64_t done = 0;
    for (const OffsetRange& part : gone.all()) {
      done += acknowledge_part({range.begin, part.begin});
      range.begin = part.end;
    }
    were_late(gone);
    return done + acknowledge_part(range);
  }
  std::uint64_t acknowledge_part(OffsetRange range) {
    const SessionAmount settled = unsettled.settle(
        range, [this](const OffsetRange& piece, HandOut hand_out) { acknowledged.add(piece, hand_out); });
    acknowledged_messages += settled.messages;
    back += settled;
    return settled.messages;
  }
};

}  // namespace lightq::inline v1
