/// Reads the letters of a dead-letter topic. Layer: topic.
#include "topic/dead/letter_scan.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/limits.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_work.hpp"
#include "delivery/record_reader.hpp"

namespace lightq::broker {

namespace {

constexpr std::uint64_t records_of_call = 256;
constexpr std::uint64_t bytes_of_call = 256 * limits::KiB;  // a call ends with the message that reaches it
constexpr int steps_of_call = 256;                          // over settled letters and gaps of the filter
constexpr Offset no_end{std::numeric_limits<std::uint64_t>::max()};

/// Takes messages of a range, and keeps those that are letters.
class ScanTurn {
 public:
  ScanTurn(const DeadFilter& filter, const ScanBounds& bounds, const LetterBook& book, LetterPiece& piece)
      : filter_(filter), bounds_(bounds), book_(book), piece_(piece) {}

  void read_up_to(Offset end) { end_ = end; }
  [[nodiscard]] bool has_budget() const {
    return records_left_ > 0 && bytes_left_ > 0 && piece_.letters.size() < bounds_.letters;
  }
  [[nodiscard]] static bool can_take() { return true; }
  [[nodiscard]] SliceLimits limits() const {
    return {.end = end_, .records = records_left_, .message_bytes = bytes_left_};
  }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    const AttributeKinds kinds = slice.batch.kinds();
    const std::byte* at = slice.records.data();
    Offset offset = slice.range().begin;
    std::uint32_t taken = 0;
    for (; taken < slice.count && has_budget(); ++taken) {
      const auto length = load_little_endian<std::uint32_t>(at);
      const ByteView message(at + sizeof length, length);
      if (kinds.has(AttributeKinds::headers)) look_at(offset, kinds, message);
      offset = offset + 1;
      at += record_bytes(length);
      --records_left_;
      bytes_left_ -= std::min<std::uint64_t>(bytes_left_, record_bytes(length));
    }
    TurnWork::add(TurnWork::batch_passed * taken);
    source.taken(taken, static_cast<std::size_t>(at - slice.records.data()));
  }

 private:
  [[nodiscard]] bool is_meant(const DeathAccount& death, const AttributesView& letter) const {
    if (filter_.cause && *filter_.cause != death.cause) return false;
    if (filter_.key && *filter_.key != letter.key()) return false;
    if (!filter_.has_time()) return true;
    constexpr std::int64_t us_of_ms = 1000;
    const Timestamp died{death.last_failure_ms * us_of_ms};
    return died.us != 0 && filter_.includes(died);  // 0: not known
  }
  void look_at(Offset offset, AttributeKinds kinds, ByteView message) {
    const auto attributes = AttributesView::trusted(kinds, message.data());
    auto death = last_death_of(attributes);
    if (!death || !is_meant(*death, attributes)) return;
    const bool is_under_way = book_.under_way().contains(offset);
    if (filter_.state && (*filter_.state == DeadState::dead_waiting) != is_under_way) return;
    FoundLetter found{offset, std::move(*death), is_under_way, {}};
    if (bounds_.originals) {
      auto original = DeadLetter::original_of(attributes, payload_of(kinds, message));
      if (original) found.original = std::move(*original);
    }
    piece_.letters.push_back(std::move(found));
  }

  const DeadFilter& filter_;
  const ScanBounds& bounds_;
  const LetterBook& book_;
  LetterPiece& piece_;
  Offset end_ = no_end;
  std::uint64_t records_left_ = records_of_call;
  std::uint64_t bytes_left_ = bytes_of_call;
};

/// A part of the topic that has no settled letter, and that the filter means.
struct Span {
  Offset begin;
  Offset end;
};

/// Returns the first such part from `from` on, or nothing if there is none below `end`. A part may be empty.
std::optional<Span> span_from(Offset from, Offset end, const DeadFilter& filter, const LetterBook& book) {
  Span span{from, end};
  if (!filter.ranges.empty()) {
    const auto range =
        std::ranges::upper_bound(filter.ranges, from, {}, [](const OffsetRange& each) { return each.end; });
    if (range == filter.ranges.end()) return std::nullopt;
    span = {std::max(from, range->begin), std::min(range->end, end)};
  }
  auto settled = book.settled().first_behind(span.begin);
  if (settled && settled->begin <= span.begin) {
    span.begin = settled->end;
    settled = book.settled().first_behind(span.begin);
  }
  if (settled) span.end = std::min(span.end, settled->begin);
  if (end <= span.begin) return std::nullopt;
  return span;
}

}  // namespace

LetterPiece scan_letters(TopicRuntime& topic, const DeadFilter& filter, const ScanBounds& bounds) {
  const TopicStore& store = topic.store();
  const LetterBook& book = topic.letter_book();
  const Offset end = store.is_durable() ? store.durable_offset() : store.next_offset();
  LetterPiece piece;
  piece.next = std::max(bounds.from, store.first_offset());
  RecordReader reader(*piece.next);
  ScanTurn turn(filter, bounds, book, piece);
  const FallibleAllocations fallible;
  try {
    for (int steps = 0; steps < steps_of_call && turn.has_budget(); ++steps) {
      const auto span = span_from(*piece.next, end, filter, book);
      if (!span) {
        piece.next.reset();
        return piece;
      }
      if (span->end <= span->begin) {
        piece.next = span->begin;
        continue;
      }
      reader.move_to(span->begin);
      turn.read_up_to(span->end);
      const TurnEnd ended = topic.reads().read(reader, turn);
      piece.next = reader.offset();
      piece.is_reading = ended == TurnEnd::pending;
      piece.is_pending = piece.is_reading || ended == TurnEnd::unavailable;
      if (piece.is_pending) return piece;
    }
  } catch (const std::bad_alloc&) {
    piece.is_pending = true;
    // The letters before the one without memory have been found.
    if (!piece.letters.empty()) piece.next = std::max(*piece.next, piece.letters.back().offset + 1);
  }
  return piece;
}

}  // namespace lightq::broker
