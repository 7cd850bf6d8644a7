/// The messages that a consumer on a session receives, singly or in batches. Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/session_settling.hpp>

namespace lightq::inline v1 {

/// A received message. Lifetime: its payload and attributes lie in the consumer's memory until the consumer's
/// next receive.
struct Delivered {
  Offset offset;
  ByteView payload;
  std::uint32_t delivery = 1;  ///< number of deliveries of this message, including this one
  AttributeKinds kinds;        ///< the kinds in `attributes`
  /// Size in bytes of the encoded attributes, which lie directly before the payload.
  std::uint16_t attributes_bytes = 0;
  bool has_expired = false;
  Timestamp time;  ///< time at which the log appended it
  /// Number of messages directly before this one that were dropped or damaged, and are never delivered.
  std::uint64_t lost = 0;
  /// The number of this delivery to this consumer; 0 if the broker gives no leases.
  HandOut hand_out = 0;
  const SessionSettling* holder = nullptr;  ///< null if the broker gives no leases

  /// Returns true if the message is not in flight to this consumer any more: the broker has taken it back, as
  /// far as the consumer's last call has found, or the connection has ended. An acknowledgement would be too
  /// late. Also returns true after the message was acknowledged or rejected. Always false if the broker gives
  /// no leases. Lifetime: the consumer's.
  [[nodiscard]] bool revoked() const {
    return holder != nullptr && !holder->unsettled.holds(offset, hand_out);
  }

  [[nodiscard]] std::string_view text() const { return as_text(payload); }
  [[nodiscard]] bool is_again() const { return delivery > 1; }
  /// Returns true if the message's time to live was over when the broker sent it. Only a Reader receives such
  /// messages.
  [[nodiscard]] bool expired() const { return has_expired; }

  /// Returns the attributes that the producer set. Lifetime: that of the payload.
  [[nodiscard]] AttributesView attributes() const {
    return AttributesView::trusted(kinds, payload.data() - attributes_bytes);
  }
  /// Returns the message's key; empty if it has none.
  [[nodiscard]] std::string_view key() const { return attributes().key(); }
  /// Returns a range of Header, in the producer's order.
  [[nodiscard]] AttributesView::Headers headers() const { return attributes().headers(); }
  /// Returns the value of the first header with this name, or nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const {
    return attributes().header(name);
  }
  /// Returns the time that the producer set; 0 if it set none.
  [[nodiscard]] Timestamp producer_time() const { return attributes().time(); }
};

/// Consecutive messages of one batch; a range of Delivered. The batch's checksum has been checked. Lifetime:
/// the messages lie in the consumer's memory until the consumer's next receive.
class DeliveredBatch {
 public:
  /// Makes a range of all messages of `batch`. `hand_out`, `holder`, `expired`: those of its messages.
  /// Requires: the batch was checked and is not compressed.
  DeliveredBatch(const BatchView& batch, std::uint32_t delivery, std::uint64_t lost, HandOut hand_out = 0,
                 const SessionSettling* holder = nullptr, bool expired = false)
      : records_(batch.records()),
        next_{.offset = batch.base_offset(),
              .payload = {},
              .delivery = delivery,
              .kinds = batch.kinds(),
              .has_expired = expired,
              .time = batch.append_time(),
              .lost = lost,
              .hand_out = hand_out,
              .holder = holder},
        end_(batch.end_offset()) {}

  [[nodiscard]] OffsetRange range() const { return {next_.offset, end_}; }
  [[nodiscard]] std::uint64_t size() const { return distance(next_.offset, end_); }
  [[nodiscard]] bool empty() const { return next_.offset == end_; }
  [[nodiscard]] std::uint32_t delivery() const { return next_.delivery; }
  [[nodiscard]] Timestamp time() const { return next_.time; }
  /// Returns the number of messages directly before the first one that were dropped or damaged, and are never
  /// delivered.
  [[nodiscard]] std::uint64_t lost() const { return next_.lost; }
  /// Returns the number of this delivery to this consumer; 0 if the broker gives no leases.
  [[nodiscard]] HandOut hand_out() const { return next_.hand_out; }

  /// Removes the first message and returns it. Requires: the batch is not empty.
  Delivered take() {
    Delivered taken = next_;
    taken.payload = records_.message();
    if (taken.kinds.any()) {
      taken.attributes_bytes = static_cast<std::uint16_t>(records_.attributes().bytes());
      taken.payload = taken.payload.subspan(taken.attributes_bytes);
    }
    records_.next();
    next_.offset = next_.offset + 1;
    next_.lost = 0;
    return taken;
  }

  /// Removes the messages from `offset` on. Requires: `offset` is in range(), or its end.
  void drop_from(Offset offset) { end_ = offset; }

  class Iterator;
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  BatchView::Records records_;
  Delivered next_;  // the next message, without its payload
  Offset end_;
};

/// A single-pass iterator. Lifetime: the message that it points at is valid until the iterator advances.
class DeliveredBatch::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Delivered;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(const DeliveredBatch& batch) : left_(batch) { ++*this; }
  const Delivered& operator*() const { return current_; }
  const Delivered* operator->() const { return &current_; }
  Iterator& operator++() {
    done_ = left_.empty();
    if (!done_) current_ = left_.take();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return done_; }

 private:
  DeliveredBatch left_;
  Delivered current_;
  bool done_ = false;
};

inline DeliveredBatch::Iterator DeliveredBatch::begin() const {
  return Iterator(*this);
}

}  // namespace lightq::inline v1
