/// A turn of plain consumers: they take single messages. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <lightq/base/batch.hpp>

#include "admission/turn_work.hpp"
#include "delivery/batches/next_slice.hpp"
#include "delivery/group_messages.hpp"
#include "delivery/record_sink.hpp"
#include "delivery/slice_source.hpp"
#include "delivery/state/turn_result.hpp"

namespace lightq::broker {

/// Offers each message to the consumers in turn, until one takes it. The turn ends when all refuse a message.
/// See dispatch_turn. Lifetime: everything that it refers to outlives it.
class PlainTurn {
 public:
  /// `first`: the index of the consumer that is asked first; it moves on with each message. The turn delivers
  /// about `bytes_max` bytes of new records.
  /// `group`: receives the messages that a consumer takes; null for a subscriber.
  PlainTurn(std::span<RecordSink* const> consumers, std::size_t& first, std::uint64_t bytes_max,
            TurnResult& result, GroupMessages* group = nullptr)
      : consumers_(consumers), first_(first), bytes_max_(bytes_max), result_(result), group_(group) {}

  [[nodiscard]] bool has_budget() const {
    return new_bytes_ < bytes_max_ && redelivered_ < redelivered_max &&
           TurnWork::bytes() - work_from_ < work_max;
  }
  [[nodiscard]] bool can_take() const { return !refused_; }
  [[nodiscard]] SliceLimits limits() const { return {.redelivered = redelivered_max - redelivered_}; }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    // Redelivered messages are counted, not their bytes, because they may be in as many ranges.
    const bool again = source.is_redelivery();
    std::uint64_t left = again ? redelivered_max - redelivered_ : bytes_max_ - new_bytes_;
    const AttributeKinds kinds = slice.batch.kinds();
    const std::byte* at = slice.records.data();
    Offset offset = slice.range().begin;
    std::uint64_t payload_bytes = 0;
    std::uint32_t taken = 0;
    for (; taken < slice.count && left > 0; ++taken) {
      const auto length = load_little_endian<std::uint32_t>(at);
      const ByteView payload = payload_of(kinds, ByteView(at + sizeof length, length));
      if (!offer(offset, payload)) {
        refused_ = true;
        break;
      }
      offset = offset + 1;
      at += record_bytes(length);
      payload_bytes += payload.size();
      left -= again ? 1 : std::min<std::uint64_t>(left, record_bytes(length));
    }
    (again ? redelivered_ : new_bytes_) = (again ? redelivered_max : bytes_max_) - left;
    result_.bytes += payload_bytes;
    result_.count(delivered.delivery, again, taken);
    source.taken(taken, static_cast<std::size_t>(at - slice.records.data()));
    if (group_ != nullptr) group_->delivered_plainly({slice.range().begin, offset}, delivered.delivery);
  }

 private:
  static constexpr std::uint64_t redelivered_max = 4096;  // messages
  // Beside delivering messages. Each redelivered range takes work by the number of sets that it is in.
  static constexpr std::uint64_t work_max = 2 * limits::MiB;

  bool offer(Offset offset, ByteView payload) {
    const std::size_t count = consumers_.size();
    if (count == 1) return consumers_.front()->offer(offset, payload);
    for (std::size_t tried = 0; tried < count; ++tried) {
      RecordSink* const consumer = consumers_[first_];
      first_ = first_ + 1 < count ? first_ + 1 : 0;
      if (consumer->offer(offset, payload)) return true;
    }
    return false;
  }

  std::span<RecordSink* const> consumers_;
  std::size_t& first_;
  const std::uint64_t bytes_max_;
  TurnResult& result_;
  GroupMessages* const group_;
  std::uint64_t new_bytes_ = 0;    // at most bytes_max_
  std::uint64_t redelivered_ = 0;  // messages of the redelivery queue, at most redelivered_max
  const std::uint64_t work_from_ = TurnWork::bytes();
  bool refused_ = false;
};

}  // namespace lightq::broker
