/// Copies old messages of a schedule, and drops files. Layer: delayed.
#include "delayed/schedule_upkeep.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "delayed/schedule_record.hpp"
#include "log/elapsed.hpp"

namespace lightq::broker {

/// Copies the messages with the lowest places to the end of the log, but none of the last file. Stops at one
/// that is under way. Returns false if nothing was copied.
bool ScheduleUpkeep::copy_oldest(Timestamp now) {
  std::vector<std::vector<std::byte>> records;
  std::vector<std::uint64_t> numbers;
  const std::uint64_t from = messages_.lowest_place().value_or(0);
  const std::uint64_t last_file = messages_.log()->last_part_begin().value;
  std::size_t bytes = 0;
  bool any_dropped = false;
  for (std::uint64_t at = from; bytes < limits_.copy_bytes;) {
    const auto message = messages_.from_place(at);
    if (!message || last_file <= message->place || moves_.is_under_way(message->position())) break;
    at = message->place + 1;
    const DelayedBody body = messages_.body_of(*message);
    if (body.outcome == DelayedBody::Outcome::unavailable) break;
    if (body.outcome == DelayedBody::Outcome::damaged) {
      messages_.drop_damaged(message->number);
      any_dropped = true;
      continue;
    }
    records.push_back(
        encode_copy({message->number, message->due_us, body.arrived.us, body.kinds, body.message}));
    numbers.push_back(message->number);
    bytes += records.back().size();
  }
  if (records.empty()) return any_dropped;
  const log::BatchLog& log = *messages_.log();
  const auto written = append_records(*messages_.log(), records, now);
  if (!written) return false;
  std::uint64_t place = written->value - records.size();
  for (const std::uint64_t number : numbers) messages_.copied(number, place++);
  if (log.durable_offset() >= copied_to_) copied_from_ = from;
  copied_to_ = *written;
  return true;
}

/// Drops the files before everything that a start needs.
void ScheduleUpkeep::drop_files() {
  log::BatchLog& log = *messages_.log();
  std::uint64_t needed = messages_.lowest_place().value_or(log.next_offset().value);
  needed = std::min(needed, moves_.lowest_undone_place().value_or(needed));
  if (log.durable_offset() < copied_to_) needed = std::min(needed, copied_from_);
  if (log.first_offset().value < needed) log.drop_before({needed});
  cancelled_.drop_records_before(log.first_offset().value);
}

bool ScheduleUpkeep::maintain(Timestamp now) {
  if (messages_.log() == nullptr) return false;
  moves_.write_done(now);
  drop_files();
  if (wants_flush() || moves_.undone() >= limits_.planned) return false;
  const std::uint64_t live = messages_.charged_bytes();
  if (messages_.log()->stored_bytes() <= 2 * live + limits_.garbage_bytes) return false;
  return copy_oldest(now) || begin_file_if_quiet(now);
}

/// Begins another file if the log has one file, and nothing was written to it lately. Returns true if the
/// files can be cleared soon.
bool ScheduleUpkeep::begin_file_if_quiet(Timestamp now) {
  log::BatchLog& log = *messages_.log();
  // Beginning a file on a full disk drops older files. There must be none.
  if (log.first_offset() < log.last_part_begin()) return false;
  if (std::exchange(seen_end_, log.next_offset()) != log.next_offset()) quiet_since_ = now;
  if (log.durable_offset() < log.next_offset()) return false;
  if (!log::has_passed(quiet_since_, quiet_us, now)) return true;
  return static_cast<bool>(log.end_segment());
}

}  // namespace lightq::broker
