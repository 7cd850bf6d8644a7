/// The batch that a consumer's program works on. Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/base/reset_by_move.hpp>
#include <lightq/base/types.hpp>
#include <lightq/delivered.hpp>

namespace lightq::inline v1 {

/// Passes the messages of one batch to the program, one by one or all at once, and knows which of them the
/// program has not begun to process. Owned by a ConsumerDriver. Movable: the object that was moved from has
/// no messages. Lifetime: the messages lie in the memory of the consumer's channel. For one thread.
class PresentBatch {
 public:
  /// Returns true if there are messages that the program has not received.
  [[nodiscard]] bool is_ready() const { return left_.get() && !left_->empty(); }
  /// Returns true if there is a batch from which not everything was taken at once.
  [[nodiscard]] bool has_batch() const { return left_.get().has_value(); }
  /// Returns the messages that the program has not received. Requires: is_ready.
  [[nodiscard]] OffsetRange left() const { return left_->range(); }

  /// Returns the number of the hand-out of these messages. Requires: has_batch.
  [[nodiscard]] HandOut hand_out() const { return left_->hand_out(); }
  /// Returns true if these messages were delivered before. Requires: has_batch.
  [[nodiscard]] bool is_again() const { return left_->delivery() > 1; }
  /// Returns true if the program may receive the next message: there is one, and the broker knows that the
  /// program begins it.
  [[nodiscard]] bool is_begun() const { return is_ready() && left_->range().begin < begun_to_; }
  /// Records that the messages before `to` may be received.
  void begun(Offset to) { begun_to_ = to; }

  /// Puts a batch in. The messages before `begun_to` may be received.
  void put(const DeliveredBatch& batch, Offset begun_to) {
    left_.get() = batch;
    begun_to_ = begun_to;
  }
  /// Takes the next message. Requires: is_ready.
  Delivered take() { return left_->take(); }
  /// Takes all messages that are left and may be received. Requires: is_begun.
  std::optional<DeliveredBatch> take_all() {
    if (begun_to_ < left_->range().end) [[unlikely]]
      return take_begun();
    in_hand_ = left_->range();
    return std::exchange(left_.get(), std::nullopt);
  }
  /// Drops the messages that the program has not received.
  void drop() { left_.get().reset(); }
  /// Drops everything, so that the next batch can be put in.
  void clear() {
    drop();
    in_hand_ = {};
  }

  /// Records that the program has acknowledged `range`. If messages of a batch that was taken at once are
  /// among them, the program is working on that batch.
  void acknowledged(const OffsetRange& range) {
    if (range.end <= in_hand_.begin || in_hand_.end <= range.begin) return;
    in_hand_.begin = std::min(range.end, in_hand_.end);
    goes_on_ = true;
  }
  /// Returns how many messages of the batch the program has not begun: those that it has not received or, in
  /// a batch that was taken at once, those after the last acknowledgement.
  [[nodiscard]] std::uint64_t waiting() const {
    return is_ready() ? left_->size() : distance(in_hand_.begin, in_hand_.end);
  }
  /// Returns the messages that wait although the program works: the rest of the batch or, in a batch that was
  /// taken at once, those after the last acknowledgement. In the second case, returns nothing unless a
  /// message was acknowledged since the last call.
  std::optional<OffsetRange> take_waiting() {
    if (is_ready()) return left();
    return std::exchange(goes_on_, false) ? std::optional(in_hand_) : std::nullopt;
  }

 private:
  std::optional<DeliveredBatch> take_begun() {
    std::optional<DeliveredBatch> begun = left_.get();
    begun->drop_from(begun_to_);
    in_hand_ = begun->range();
    while (is_begun()) (void)left_->take();
    return begun;
  }

  ResetByMove<std::optional<DeliveredBatch>> left_;  // messages that the program has not received
  Offset begun_to_;
  OffsetRange in_hand_;   // messages after the last acknowledgement of a batch that was taken at once
  bool goes_on_ = false;  // a message of in_hand_ was acknowledged since the last take_waiting
};

}  // namespace lightq::inline v1
