/// Carries waiting messages over when the log drops the others. Layer: delivery.
#include "delivery/carry_over.hpp"

#include <algorithm>
#include <cstring>

#include <lightq/base/batch_cut.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
// Messages are carried if fewer than one in so many waits.
constexpr std::uint64_t carried_share = 10;
// The most that one call copies: a few milliseconds' work. The rest follows in later calls.
constexpr std::uint64_t carried_records_max = 1024;
constexpr std::uint64_t carried_bytes_max = 4 * limits::MiB;
// The most work to find out how many wait, and to find copies that nobody needs; see TurnWork.
constexpr std::uint64_t count_work_max = 512 * limits::KiB;
constexpr std::uint64_t reading_work_max = 4 * limits::MiB;
constexpr std::uint64_t sweep_work_max = 256 * limits::KiB;
constexpr std::uint64_t swept_max = 1024;
}  // namespace

CarryOver::CarryOver(log::BatchLog& log, ConsumerGroups& groups, DamageCount& damage,
                     const protocol::TopicSettings& settings)
    : log_(log),
      groups_(groups),
      damage_(damage),
      over_pending_(settings.retention_over_pending),
      drops_oldest_(settings.overflow == protocol::Overflow::drop_oldest) {
  if (carried() != nullptr) log_.guard_drops(this);
}

CarryOver::~CarryOver() {
  if (carried() != nullptr) log_.guard_drops(nullptr);
}

/// Returns the lowest offset that a group which holds the log needs and that does not wait. Returns nothing
/// if no group holds the log.
std::optional<Offset> CarryOver::active() const {
  std::optional<Offset> from;
  groups_.each_holder([&](const ConsumerGroup& group) {
    const Offset here = active_from(group.messages(), log_.first_offset());
    from = from ? std::min(*from, here) : here;
    return true;
  });
  return from;
}

/// Returns the first messages that end after `offset` and wait in a group that holds the log.
std::optional<OffsetRange> CarryOver::waiting_in_any(Offset offset) const {
  std::optional<OffsetRange> first;
  groups_.each_holder([&](const ConsumerGroup& group) {
    if (!any_waiting(group.messages())) return true;
    const auto run = waiting_behind(group.messages(), offset);
    if (run && (!first || run->begin < first->begin)) first = run;
    return true;
  });
  return first;
}

bool CarryOver::is_needed(Offset message) const {
  return !groups_.each_holder([&](const ConsumerGroup& group) {
    TurnWork::add(TurnWork::range_passed);
    return !is_unfinished(group.messages(), message);
  });
}

std::optional<Offset> CarryOver::carry_oldest() {
  if (carried() == nullptr) return std::nullopt;
  const Offset first = log_.first_offset();
  const auto limit_of_all = active();
  if (!limit_of_all || *limit_of_all <= first || !few_wait({first, *limit_of_all})) return std::nullopt;
  const Carried done = carry({first, *limit_of_all});
  has_more_ = has_more_ || done.stop == Stop::enough;
  return done.end;
}

/// Under `drop_oldest`, messages without a copy are dropped only if there is no space for copies.
Offset CarryOver::before_drop(OffsetRange range, Reason reason) {
  if (reason == Reason::space) {
    if (!drops_oldest_ || !uncarried_behind(range.begin)) return range.end;
    const Carried done = carry(range);
    has_more_ = has_more_ || done.stop == Stop::enough;
    return done.stop == Stop::no_space ? range.end : done.end;
  }
  if (over_pending_) return range.end;
  const auto waiting = uncarried_behind(range.begin);
  if (!waiting || range.end <= waiting->begin) return range.end;
  return few_wait(range) ? carry(range).end : std::max(waiting->begin, range.begin);
}

bool CarryOver::was_refused(const Refused& asked) const {
  const auto most_of = [](std::uint64_t number) { return number - number / carried_share; };
  return asked.range.begin == refused_.range.begin &&
         most_of(distance(asked.range.begin, asked.range.end)) <=
             distance(refused_.range.begin, refused_.range.end) &&
         most_of(refused_.waiting) <= asked.waiting;
}

/// Returns true if less than a tenth of `range` waits and has no copy yet, by messages or by bytes.
bool CarryOver::few_wait(OffsetRange range) {
  const std::uint64_t most = distance(range.begin, range.end) / carried_share;
  std::uint64_t waiting = 0;
  groups_.each_holder([&](const ConsumerGroup& group) {
    if (any_waiting(group.messages())) waiting += waiting_in(group.messages(), range);
    return true;
  });
  if (waiting <= most) return true;
  // The same messages may wait in several groups, or have a copy.
  const Refused asked{range, waiting};
  if (was_refused(asked)) return false;
  const std::uint64_t work_from = TurnWork::bytes();
  std::uint64_t counted = 0;
  Offset at = range.begin;
  while (counted <= most) {
    const auto run = uncarried_behind(at);
    if (!run || range.end <= run->begin) return true;
    if (TurnWork::bytes() - work_from > count_work_max) break;
    at = std::min(run->end, range.end);
    counted += distance(run->begin, at);
    TurnWork::add(TurnWork::range_passed);
  }
  if (few_bytes_wait(range)) return true;
  refused_ = asked;
  return false;
}

/// Reads the messages that wait. Takes all messages of the log for equally long, because it does not know the
/// bytes of `range`.
bool CarryOver::few_bytes_wait(OffsetRange range) {
  const std::uint64_t all = distance(log_.first_offset(), log_.next_offset());
  const double share = static_cast<double>(distance(range.begin, range.end)) / static_cast<double>(all);
  const double most = static_cast<double>(log_.stored_bytes()) * share / static_cast<double>(carried_share);
  RecordReader reader(range.begin);
  NextSlice next;
  double bytes = 0;
  Offset at = range.begin;
  const std::uint64_t work_from = TurnWork::bytes();
  while (TurnWork::bytes() - work_from <= reading_work_max) {
    TurnWork::add(TurnWork::batch_passed);
    const auto run = uncarried_behind(at);
    if (!run || range.end <= run->begin) return true;
    reader.move_to(run->begin);
    const Offset end = std::min(run->end, range.end);
    const SliceOutcome outcome = reader.next(log_, {}, {.end = end}, next);
    if (outcome != SliceOutcome::slice && outcome != SliceOutcome::limit) return false;
    at = outcome == SliceOutcome::slice ? next.delivered.slice.range().end : end;
    if (outcome == SliceOutcome::slice) bytes += static_cast<double>(next.delivered.slice.records.size());
    if (bytes > most) return false;
  }
  return false;
}

/// Returns the first messages at `offset` or behind it that wait and have no copy.
std::optional<OffsetRange> CarryOver::uncarried_behind(Offset offset) const {
  for (Offset at = offset;;) {
    const auto run = waiting_in_any(at);
    if (!run) return std::nullopt;
    const OffsetRange waiting{std::max(run->begin, at), run->end};
    const auto copied = carried()->offsets().first_behind(waiting.begin);
    if (!copied || waiting.end <= copied->begin) return waiting;
    if (waiting.begin < copied->begin) return OffsetRange{waiting.begin, copied->begin};
    at = copied->end;
    TurnWork::add(TurnWork::range_passed);
  }
}

/// Copies messages of `range` that wait, a limited number, but at least one. The walk over those that have a
/// copy does not count, so that a call always comes further than the one before.
CarryOver::Carried CarryOver::carry(OffsetRange range) {
  std::optional<std::uint64_t> work_from;
  RecordReader reader(range.begin);
  NextSlice next;
  Offset at = range.begin;
  std::uint64_t left = carried_records_max;
  for (;;) {
    const auto waiting = uncarried_behind(at);
    if (!waiting || range.end <= waiting->begin) return {range.end};
    at = waiting->begin;
    if (left == 0 || (work_from && TurnWork::bytes() - *work_from > carried_bytes_max))
      return {at, Stop::enough};
    if (!work_from) work_from = TurnWork::bytes();
    reader.move_to(at);
    const SliceLimits wanted{.end = std::min(waiting->end, range.end), .records = left};
    const SliceOutcome outcome = reader.next(log_, {}, wanted, next);
    damage_.note(reader.take_damage());
    if (outcome == SliceOutcome::slice) {
      const Offset from = next.delivered.slice.range().begin;
      at = from;
      const bool copied = copy(next.delivered.slice, at);
      left -= std::min(left, distance(from, at));
      if (!copied) return {at, Stop::no_space};
      continue;
    }
    if (outcome != SliceOutcome::limit) return {at, Stop::unreadable};
    at = wanted.end;  // it is damaged
  }
}

/// Copies the messages of a slice. `at` becomes the offset behind the last copy. Returns false if there is no
/// space for more.
bool CarryOver::copy(const BatchSlice& slice, Offset& at) {
  ByteView records = slice.records;
  for (std::uint32_t i = 0; i < slice.count; ++i) {
    const std::size_t bytes = record_bytes(load_little_endian<std::uint32_t>(records.data()));
    record_.resize(batch_layout::header_bytes + bytes);
    const ByteView record = records.first(bytes);
    write_cut_header(BatchHeaderSpace(record_.data(), batch_layout::header_bytes), slice.batch,
                     slice.first + i, 1, record);
    std::memcpy(record_.data() + batch_layout::header_bytes, record.data(), bytes);
    TurnWork::add(record_.size());
    if (!add(record_)) return false;
    records = records.subspan(bytes);
    at = at + 1;
  }
  return true;
}

/// Adds a copy. If there is no space, first forgets copies that no group needs.
bool CarryOver::add(ByteView record) {
  bool added = carried()->add(record);
  if (!added) {
    swept_to_ = {};
    sweep();
    added = carried()->add(record);
  }
  if (added) {
    fault_.reset();
  } else {
    fault_ = carried()->last_error();
  }
  return added;
}

void CarryOver::sweep() {
  refused_ = {};
  if (carried() == nullptr || carried()->offsets().empty()) return;
  const std::uint64_t work_from = TurnWork::bytes();
  std::vector<OffsetRange> finished;
  std::uint64_t left = swept_max;
  Offset at = swept_to_;
  for (; left > 0 && TurnWork::bytes() - work_from <= sweep_work_max; --left, at = at + 1) {
    const auto run = carried()->offsets().first_behind(at);
    if (!run) {
      at = {};
      break;
    }
    at = std::max(at, run->begin);
    TurnWork::add(4 * TurnWork::range_passed);
    if (is_needed(at)) continue;
    if (!finished.empty() && finished.back().end == at) {
      finished.back().end = at + 1;
    } else {
      finished.push_back({at, at + 1});
    }
  }
  swept_to_ = at;
  for (const OffsetRange& range : finished) carried()->remove(range);
}

}  // namespace lightq::broker
