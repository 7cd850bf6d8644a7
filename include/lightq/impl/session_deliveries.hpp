/// The messages that were delivered over a consumer's channel. Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/batch_unpack.hpp>
#include <lightq/base/result.hpp>
#include <lightq/consumer_stats.hpp>
#include <lightq/delivered.hpp>
#include <lightq/detail/offset_ranges.hpp>
#include <lightq/detail/session_connection.hpp>
#include <lightq/detail/session_route.hpp>
#include <lightq/detail/session_settling.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

/// The present batch, which the program works on, and the messages that are in flight to this consumer. Also
/// counts messages, and gathers the credit that settled messages give back. Owned by a SessionConsumeLink.
/// Lifetime: the bytes of the present batch lie in the connection's buffer or in this object. For one thread.
class SessionDeliveries {
 public:
  /// A batch that was delivered and checked, perhaps compressed.
  struct Checked {
    session::DeliverHead head;
    BatchView batch;

    [[nodiscard]] SessionAmount amount() const { return {batch.record_count(), batch.message_bytes()}; }
  };

  /// `automatic`: the broker counts messages as acknowledged when it sends them.
  explicit SessionDeliveries(bool automatic) : is_automatic_(automatic) {}

  // --- The present batch.

  /// Checks the content of a `deliver` frame. Errors: those of a violation of the protocol.
  static Result<Checked> check(const SessionFrame& frame) {
    const Result<session::DeliverHead> head =
        session::DeliverHead::decode(frame.body.first(session::deliver_head_bytes));
    if (!head) return head.error();
    const ByteView bytes = frame.body.subspan(session::deliver_head_bytes);
    if (const auto fault = BatchView::check(bytes))
      return SessionRoute::violation("delivered a batch that is damaged (fault " +
                                     std::to_string(static_cast<int>(*fault)) + ")");
    const BatchView batch = BatchView::trusted(bytes.data());
    if (batch.total_bytes() != bytes.size()) return SessionRoute::violation("delivered bytes after a batch");
    if (batch.base_offset().value > UINT64_MAX - batch.record_count())
      return SessionRoute::violation("delivered offsets beyond the maximum");
    if (head->delivery == 0) return SessionRoute::violation("delivered messages with the attempt number 0");
    return Checked{*head, batch};
  }
  /// Returns the batch uncompressed, or nothing if it cannot be unpacked. Valid until the next call.
  std::optional<BatchView> unpack(const BatchView& batch) {
    const std::optional<BatchView> plain = unpacker_.unpack(batch);
    unpacker_.forget();
    return plain;
  }
  /// Makes a batch the present one. `plain`: its uncompressed form; `lost`: the number of messages lost
  /// directly before it; `hand_out`: 0 without leases. Requires: there is no present batch.
  void hand_over(const Checked& checked, const BatchView& plain, std::uint64_t lost, HandOut hand_out) {
    const SessionAmount amount = checked.amount();
    batch_.emplace(plain, checked.head.delivery, lost, hand_out, hand_out != 0 ? &settling_ : nullptr);
    if (is_automatic_) {
      of_batch_ = amount;
    } else {
      settling_.back += settling_.unsettled.add(batch_->range(), amount.bytes, hand_out);
      settling_.newest = hand_out;
    }
    counts_.received += amount.messages;
    if (checked.head.delivery > 1) counts_.again += amount.messages;
    counts_.lost += lost;
  }
  /// Returns the present batch, or nothing. Its messages count as received by the program.
  [[nodiscard]] const std::optional<DeliveredBatch>& batch() const { return batch_; }
  /// Drops the present batch, which the program does not use any more. Returns false if there was none.
  bool release() {
    if (!batch_) return false;
    batch_.reset();
    settling_.back += std::exchange(of_batch_, {});
    return true;
  }

  // --- Messages in flight.

  /// Returns what acknowledgements change. Valid as long as this object.
  [[nodiscard]] SessionSettling& settling() { return settling_; }
  /// Settles the messages of `range` that are in flight, because the program rejects them. Returns them.
  HandOutRanges reject(OffsetRange range) {
    HandOutRanges pieces;  // merges ranges of neighbouring frames into one
    const SessionAmount settled = settling_.unsettled.settle(
        range, [&](const OffsetRange& piece, HandOut hand_out) { pieces.add(piece, hand_out); });
    counts_.rejected += settled.messages;
    settling_.back += settled;
    return pieces;
  }
  /// Takes messages of `range` out of flight if their hand-out came before `before`, because the broker has
  /// taken them back. `is_known`: the program may have received them.
  void revoke(OffsetRange range, HandOut before, bool is_known) {
    counts_.revoked += settling_.revoke(range, before, is_known);
  }
  /// Counts messages of the present batch that the program does not receive after all.
  void not_given(std::uint64_t messages) {
    counts_.received -= messages;
    if (batch_ && batch_->delivery() > 1) counts_.again -= messages;
  }
  /// Returns the number of messages that the program has received and not settled.
  [[nodiscard]] std::uint64_t unsettled() const { return settling_.unsettled.messages(); }
  /// Returns true if the broker counts messages as acknowledged when it sends them.
  [[nodiscard]] bool is_automatic() const { return is_automatic_; }
  /// Forgets all messages in flight while the channel stays open, so that their credit goes back.
  void forget() {
    settling_.acknowledged.clear();
    settling_.revoked.clear();
    settling_.back += settling_.unsettled.clear();
  }
  /// Forgets all messages in flight and all credit because the connection has ended. The present batch stays.
  void drop() {
    settling_.acknowledged.clear();
    settling_.unsettled.clear();
    settling_.revoked.clear();
    of_batch_ = settling_.back = {};
  }

  // --- Late acknowledgements, and counters.

  /// Records messages that were acknowledged too late.
  void were_late(const std::vector<OffsetRange>& ranges) {
    for (const OffsetRange& range : ranges) settling_.was_late(range);
  }
  /// Returns the messages that were acknowledged too late since the last call, at most
  /// SessionSettling::ranges_max ranges.
  std::vector<OffsetRange> take_late() { return std::exchange(settling_.late, OffsetRanges()).all(); }
  /// Returns the counters of messages; those of the channel are 0.
  [[nodiscard]] ConsumerStats stats() const {
    ConsumerStats stats = counts_;
    stats.acknowledged = settling_.acknowledged_messages;
    stats.late = settling_.late_messages;
    return stats;
  }

 private:
  bool is_automatic_;
  BatchUnpacker unpacker_;
  std::optional<DeliveredBatch> batch_;
  SessionAmount of_batch_;  // credit to give when the present batch is released
  SessionSettling settling_;
  ConsumerStats counts_;
};

}  // namespace lightq::inline v1
