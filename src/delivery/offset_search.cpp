/// Searches a log by offset and by time. Layer: delivery.
#include "delivery/offset_search.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

/// Returns the batch with the first existing message at or after `offset`. Reads only the batch's header,
/// because any client may ask for this often. Errors: io_error if the batch cannot be read now.
Result<std::optional<BatchView>> batch_at(Offset offset, log::BatchLog& log) {
  log::ReadPosition place{offset};
  while (place.offset < log.next_offset()) {
    TurnWork::add(TurnWork::batch_looked_at);
    const log::ReadResult read = log.read_header(place);
    if (read.outcome == log::ReadOutcome::batch) return std::optional(read.batch);
    if (read.outcome == log::ReadOutcome::unavailable) return log.last_error();
    if (read.outcome != log::ReadOutcome::trimmed && read.outcome != log::ReadOutcome::damaged) break;
    place = log::ReadPosition{read.next};
  }
  return std::optional<BatchView>();
}

Result<Offset> first_since(Timestamp time, log::BatchLog& log) {
  const log::FoundByTime found = log.first_since(time);
  TurnWork::add(found.batches_passed * TurnWork::batch_passed +
                found.segments_passed * TurnWork::segment_passed);
  if (found.unavailable) return log.last_error();
  return std::clamp(found.offset, log.first_offset(), log.next_offset());
}

}  // namespace

Result<Offset> offset_of(const StartPosition& place, log::BatchLog& log) {
  const Offset first = log.first_offset();
  const Offset next = log.next_offset();
  switch (place.from) {
    case StartPosition::From::first: return first;
    case StartPosition::From::next: break;
    case StartPosition::From::last: return first < next ? Offset{next.value - 1} : next;
    case StartPosition::From::offset: return std::clamp(Offset{place.value}, first, next);
    case StartPosition::From::time: {
      constexpr std::uint64_t time_max = std::numeric_limits<std::int64_t>::max();
      return first_since({static_cast<std::int64_t>(std::min(place.value, time_max))}, log);
    }
  }
  return next;
}

std::optional<Timestamp> append_time_at(Offset offset, log::BatchLog& log) {
  const auto batch = batch_at(offset, log);
  if (!batch || !*batch) return std::nullopt;
  return (*batch)->append_time();
}

}  // namespace lightq::broker
