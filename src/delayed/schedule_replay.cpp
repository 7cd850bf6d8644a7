/// Restores a schedule from its log. Layer: delayed.
#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "delayed/due_runs.hpp"
#include "delayed/schedule.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Reads a schedule's log from its beginning, and repeats its records. Thread: one.
class ScheduleReplay {
 public:
  ScheduleReplay(ScheduledMessages& messages, CancelledNumbers& cancelled, DueMoves& moves)
      : to_(messages), cancelled_(cancelled), moves_(moves) {}
  Result<void> run(const Schedule::TopicLog& topic);

 private:
  Result<void> read_all();
  Result<void> take(const BatchView& batch);
  void take(std::uint64_t place, const PlanRecord& plan);
  void take(std::uint64_t place, const DoneRecord& done);
  void take(std::uint64_t place, const CancelRecord& cancel);
  void void_plan(std::uint64_t number);
  void take(std::uint64_t place, const DueRecord& due);
  void take(std::uint64_t place, const CopyRecord& copy);
  void forget(std::uint64_t number);
  Result<void> find_moved(const Schedule::TopicLog& topic);
  void settle(const Schedule::TopicLog& topic);

  ScheduledMessages& to_;
  CancelledNumbers& cancelled_;
  DueMoves& moves_;
  struct Planned {
    std::uint64_t sequence = 0;
    std::uint64_t log_offset = 0;  // where the search in the topic's log begins
  };
  std::unordered_map<std::uint64_t, Planned> planned_;  // the last plan of each message, by number
  std::map<std::uint64_t, std::uint64_t> by_sequence_;  // the numbers in planned_
  log::OffsetSet moved_;                                // sequence numbers that are in the topic's log
  // Lower sequence numbers have left if the search would begin in a part of the log that was dropped.
  std::uint64_t dropped_below_ = 0;
  std::uint64_t next_sequence_ = 0;
};

Result<void> Schedule::restore(const TopicLog& topic) {
  messages_.load_begin();
  auto restored = ScheduleReplay(messages_, cancelled_, moves_).run(topic);
  messages_.load_end();
  return restored;
}

Result<void> ScheduleReplay::run(const Schedule::TopicLog& topic) {
  if (auto read = read_all(); !read) return read;
  if (auto found = find_moved(topic); !found) return found;
  settle(topic);
  return {};
}

Result<void> ScheduleReplay::read_all() {
  log::BatchLog& log = *to_.log();
  log::ReadPosition place{log.first_offset()};
  for (;;) {
    const log::ReadResult read = log.read(place);
    switch (read.outcome) {
      case log::ReadOutcome::end: return {};
      case log::ReadOutcome::batch:
        if (auto taken = take(read.batch); !taken) return taken;
        place.offset = read.batch.end_offset();
        break;
      case log::ReadOutcome::damaged:
        // Some of these may be records of the broker, or messages that have left.
        to_.count_corrupt(distance(place.offset, read.next));
        place.offset = read.next;
        break;
      case log::ReadOutcome::trimmed: place.offset = read.next; break;
      case log::ReadOutcome::unavailable:
      case log::ReadOutcome::pending: return log.last_error();
    }
  }
}

Result<void> ScheduleReplay::take(const BatchView& batch) {
  std::uint64_t place = batch.base_offset().value;
  if (batch.is_compressed()) {  // never written: batches are stored decompressed
    to_.count_corrupt(batch.record_count());
    return {};
  }
  if (batch.producer_id() != 0) {
    for (DueRuns runs(batch, batch.append_time()); runs.next();) {
      WaitingRun run = runs.run();
      run.number = run.place = place + runs.index();
      to_.load(run);
    }
    return {};
  }
  for (auto record = batch.records(); !record.done(); record.next(), ++place) {
    const DecodedRecord decoded = decode_schedule_record(record.message());
    if (!decoded.record && decoded.fault == RecordFault::newer) {
      return Error{ErrorCode::foreign_format, "the schedule has a record of a newer version at offset " +
                                                  std::to_string(place) + ": use the newer lightq"};
    }
    if (!decoded.record) {
      to_.count_corrupt(1);
      continue;
    }
    std::visit([&](const auto& each) { take(place, each); }, *decoded.record);
  }
  return {};
}

void ScheduleReplay::take(std::uint64_t /*place*/, const PlanRecord& plan) {
  std::uint64_t sequence = plan.first_sequence;
  for (const std::uint64_t number : plan.numbers) {
    if (to_.waiting().find(number)) {
      void_plan(number);
      planned_[number] = {sequence, plan.log_offset};
      by_sequence_[sequence] = number;
    }
    ++sequence;
  }
  next_sequence_ = std::max(next_sequence_, sequence);
}

void ScheduleReplay::take(std::uint64_t /*place*/, const DoneRecord& done) {
  for (const NumberRange& range : done.sequences) {
    if (limits::offset_max < range.end) continue;
    next_sequence_ = std::max(next_sequence_, range.end);
    for (auto at = by_sequence_.lower_bound(range.begin);
         at != by_sequence_.end() && at->first < range.end;) {
      const std::uint64_t number = at->second;
      ++at;
      forget(number);
    }
  }
}

void ScheduleReplay::take(std::uint64_t place, const CancelRecord& cancel) {
  for (const std::uint64_t number : cancel.numbers) forget(number);
  cancelled_.add(cancel.numbers, place);
}

void ScheduleReplay::take(std::uint64_t /*place*/, const DueRecord& due) {
  for (const std::uint64_t number : due.numbers) {
    if (!to_.waiting().find(number)) continue;
    to_.set_due(number, 1, due.due_us);
    void_plan(number);  // its plan was taken back: the due time of a message under way never changes
  }
}

void ScheduleReplay::take(std::uint64_t place, const CopyRecord& copy) {
  if (place <= copy.number) {  // a number is the offset of the first copy
    to_.count_corrupt(1);
    return;
  }
  to_.forget(copy.number);
  to_.load({copy.number, copy.due_us, place, static_cast<std::uint32_t>(copy.message.size())});
}

void ScheduleReplay::forget(std::uint64_t number) {
  to_.forget(number);
  void_plan(number);
}

void ScheduleReplay::void_plan(std::uint64_t number) {
  const auto planned = planned_.find(number);
  if (planned == planned_.end()) return;
  const auto at = by_sequence_.find(planned->second.sequence);
  if (at != by_sequence_.end() && at->second == number) by_sequence_.erase(at);
  planned_.erase(planned);
}

/// Collects the sequence numbers of the mover that are in the topic's log, from the first place on where a
/// planned message can be. A power cut may have taken single batches, so the highest number is not enough.
Result<void> ScheduleReplay::find_moved(const Schedule::TopicLog& topic) {
  if (planned_.empty()) return {};
  std::uint64_t from = limits::offset_max;
  for (const auto& [number, plan] : planned_) from = std::min(from, plan.log_offset);
  dropped_below_ = topic.expected;
  bool is_found = false;
  bool has_gap = false;  // before the first one that is found
  log::ReadPosition place{std::max(Offset{from}, topic.log.first_offset())};
  for (bool more = place.offset < topic.log.next_offset(); more;) {
    const log::ReadResult read = topic.log.read_header(place);
    switch (read.outcome) {
      case log::ReadOutcome::batch: {
        place.offset = read.batch.end_offset();
        const std::uint64_t begin = read.batch.first_sequence();
        if (read.batch.producer_id() != topic.producer_id || begin < topic.sequences_from) break;
        const std::uint64_t sequence = begin - topic.sequences_from;
        if (limits::offset_max - read.batch.record_count() < sequence) break;
        // A message that is missing just before this one may have been in the gap.
        if (!is_found) dropped_below_ = has_gap ? 0 : std::min(dropped_below_, sequence);
        is_found = true;
        moved_.add({{sequence}, {sequence + read.batch.record_count()}});
        break;
      }
      case log::ReadOutcome::damaged:
      case log::ReadOutcome::trimmed:
        has_gap = true;
        place.offset = read.next;
        break;
      case log::ReadOutcome::end: more = false; break;
      case log::ReadOutcome::unavailable:
      case log::ReadOutcome::pending: return topic.log.last_error();
    }
  }
  return {};
}

/// Finishes the planned messages that are in the topic's log as soon as that is durable, which it may not be
/// yet after a kill. The others wait for another plan.
void ScheduleReplay::settle(const Schedule::TopicLog& topic) {
  std::vector<UndoneMoves::Undone> undone;
  std::vector<MovePlan::Planned> taken_back;
  const std::uint64_t log_begin = topic.log.first_offset().value;
  for (const auto& [number, plan] : planned_) {
    const bool is_dropped = plan.log_offset < log_begin && plan.sequence < dropped_below_;
    if (!is_dropped && !moved_.contains({plan.sequence})) {
      taken_back.push_back({plan.sequence, to_.waiting().find(number)->position(), plan.log_offset});
      continue;
    }
    undone.push_back({plan.sequence, to_.waiting().find(number)->place, topic.log.next_offset()});
    to_.forget(number);
  }
  std::ranges::sort(undone, {}, &UndoneMoves::Undone::sequence);
  moves_.restore(undone, std::max(next_sequence_, topic.expected), std::move(taken_back));
}

}  // namespace lightq::broker
