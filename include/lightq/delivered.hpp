/// What a consumer on a session is given: messages, one by one or by the batch. Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1 {

/// A message. Its payload lies in the consumer's memory until the consumer's next receive.
struct Delivered {
  Offset offset;
  ByteView payload;
  std::uint32_t delivery = 1;          ///< how often it was handed out, this time included
  AttributeKinds kinds;                ///< see `attributes`
  std::uint16_t attributes_bytes = 0;  ///< right before the payload
  Timestamp time;                      ///< when the log took it
  std::uint64_t lost = 0;  ///< messages right before it that were dropped or damaged, and do not come

  [[nodiscard]] std::string_view text() const { return as_text(payload); }
  [[nodiscard]] bool is_again() const { return delivery > 1; }

  /// What the producer has said of it; valid as the payload is.
  [[nodiscard]] AttributesView attributes() const {
    return AttributesView::trusted(kinds, payload.data() - attributes_bytes);
  }
  /// Empty: none.
  [[nodiscard]] std::string_view key() const { return attributes().key(); }
  /// In the producer's order; a range of Header.
  [[nodiscard]] AttributesView::Headers headers() const { return attributes().headers(); }
  /// The first header's value that has that name; nothing: there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const {
    return attributes().header(name);
  }
  /// The time that its producer gave it; 0: none.
  [[nodiscard]] Timestamp producer_time() const { return attributes().time(); }
};

/// Messages that follow each other, of one batch; their checksum has been checked. A range of Delivered. Lies
/// in the consumer's memory until the consumer's next receive.
class DeliveredBatch {
 public:
  /// All messages of a batch that was checked, and is not compressed.
  DeliveredBatch(const BatchView& batch, std::uint32_t delivery, std::uint64_t lost)
      : records_(batch.records()),
        next_{.offset = batch.base_offset(),
              .payload = {},
              .delivery = delivery,
              .kinds = batch.kinds(),
              .time = batch.append_time(),
              .lost = lost},
        end_(batch.end_offset()) {}

  [[nodiscard]] OffsetRange range() const { return {next_.offset, end_}; }
  [[nodiscard]] std::uint64_t size() const { return distance(next_.offset, end_); }
  [[nodiscard]] bool empty() const { return next_.offset == end_; }
  [[nodiscard]] std::uint32_t delivery() const { return next_.delivery; }
  [[nodiscard]] Timestamp time() const { return next_.time; }
  /// Messages right before the first one that do not come.
  [[nodiscard]] std::uint64_t lost() const { return next_.lost; }

  /// Takes the first message out, of which there must be one.
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

  class Iterator;
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  BatchView::Records records_;
  Delivered next_;  // without its payload
  Offset end_;
};

/// One pass; what it points at is valid until it moves on.
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
