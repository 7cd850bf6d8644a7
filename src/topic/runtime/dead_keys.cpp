/// Reads messages and compares their keys. Layer: topic.
#include "topic/runtime/dead_keys.hpp"

#include <new>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/limits.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_work.hpp"
#include "delivery/record_reader.hpp"

namespace lightq::broker {

namespace {

/// A turn that takes messages, and remembers those with the key.
class KeyTurn {
 public:
  KeyTurn(std::string_view key, std::uint64_t most) : key_(key), most_(most) {
    ranges_.reserve(messages_max);  // so that `take` allocates nothing
  }

  [[nodiscard]] bool has_budget() const {
    return messages_ < messages_max && bytes_ < bytes_max && found_messages_ < most_ &&
           TurnWork::bytes() - work_from_ < work_max;
  }
  [[nodiscard]] static bool can_take() { return true; }
  [[nodiscard]] SliceLimits limits() const { return {.end = end_, .records = messages_max - messages_}; }
  void take(SliceSource& source, DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    const AttributeKinds kinds = slice.batch.kinds();
    const std::byte* at = slice.records.data();
    const Offset first = slice.range().begin;
    std::uint64_t taken = 0;
    for (; taken < slice.count && found_messages_ < most_; ++taken) {
      const auto length = load_little_endian<std::uint32_t>(at);
      if (AttributesView::trusted(kinds, at + sizeof length).key() == key_) found(first + taken);
      at += record_bytes(length);
    }
    messages_ += taken;
    bytes_ += slice.batch.total_bytes();  // all of it was read, and perhaps decompressed
    TurnWork::add(TurnWork::record_passed * taken);
    source.taken(taken, static_cast<std::size_t>(at - slice.records.data()));
  }

  /// Sets the end of the messages to take.
  void end_at(Offset end) { end_ = end; }
  /// Counts an attempt that has read nothing.
  void attempted() {
    ++messages_;
    bytes_ += bytes_of_attempt;
  }
  [[nodiscard]] std::vector<OffsetRange> ranges() { return std::move(ranges_); }

 private:
  static constexpr std::uint64_t messages_max = 256;
  static constexpr std::uint64_t bytes_max = limits::MiB;
  static constexpr std::uint64_t bytes_of_attempt = 64 * limits::KiB;
  static constexpr std::uint64_t work_max = 2 * limits::MiB;

  void found(Offset message) {
    ++found_messages_;
    if (!ranges_.empty() && ranges_.back().end == message) {
      ranges_.back().end = message + 1;
    } else {
      ranges_.push_back({message, message + 1});
    }
  }

  const std::string_view key_;
  const std::uint64_t most_;
  const std::uint64_t work_from_ = TurnWork::bytes();
  Offset end_;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t found_messages_ = 0;
  std::vector<OffsetRange> ranges_;
};

/// Reads as the turn permits. Without memory the next message is unavailable.
TurnEnd read_keys(TopicReads& reads, RecordReader& reader, KeyTurn& turn) {
  const FallibleAllocations fallible;
  try {
    return reads.read(reader, turn);
  } catch (const std::bad_alloc&) {
    return TurnEnd::unavailable;
  }
}

}  // namespace

KeyedMessages messages_with_key(TopicReads& reads, std::span<const OffsetRange> ranges, std::string_view key,
                                std::uint64_t most) {
  KeyedMessages result;
  if (ranges.empty()) return result;
  RecordReader reader(ranges.front().begin);
  KeyTurn turn(key, most);
  for (const OffsetRange& range : ranges) {
    reader.move_to(range.begin);
    turn.end_at(range.end);
    while (reader.offset() < range.end && !result.next) {
      const TurnEnd end = turn.has_budget() ? read_keys(reads, reader, turn) : TurnEnd::over;
      if (reader.offset() >= range.end) break;
      switch (end) {
        case TurnEnd::pending: result.is_pending = true; [[fallthrough]];
        case TurnEnd::over:
        case TurnEnd::no_consumer: result.next = reader.offset(); break;
        case TurnEnd::unavailable:
        case TurnEnd::no_message:
          ++result.unreadable;
          turn.attempted();
          reader.move_to(reader.offset() + 1);
          break;
      }
    }
    if (result.next) break;
  }
  result.unreadable += reader.lost();
  result.ranges = turn.ranges();
  return result;
}

}  // namespace lightq::broker
