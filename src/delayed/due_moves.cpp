/// Plans and packs the messages that are due. Layer: delayed.
#include "delayed/due_moves.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "delayed/schedule_record.hpp"

namespace lightq::broker {

namespace {

// With plan_ahead_us before the first one, everything that is due within this time is planned, so that a
// steady stream needs a record only now and then.
constexpr std::int64_t plan_until_us = 3 * DueMoves::plan_ahead_us;
constexpr std::uint32_t move_records_max = 4096;

/// Returns how many of the first messages of a planned entry do not wait any more, because they were
/// cancelled or damaged. `run`: of the index, from the entry's first number on.
std::uint32_t gone_from(const MovePlan::Planned& planned, const std::optional<WaitingRun>& run) {
  if (!run || planned.end() <= run->number) return planned.count;
  const bool is_other = run->due_us != planned.position.due_us;
  return static_cast<std::uint32_t>((is_other ? std::min(run->end(), planned.end()) : run->number) -
                                    planned.position.number);
}

}  // namespace

std::span<std::byte> MoveBatch::finish(std::uint64_t id, std::uint64_t first) {
  return builder.finish({.producer_id = id, .first_sequence = first});
}

/// Walks from the first message behind the planned ones on.
WaitingIndex::Walk DueMoves::unplanned() const {
  const auto last = plan_.last();
  if (!last) return from_.waiting().walk();
  auto walk = from_.waiting().walk(*last);
  if (walk.get() != nullptr && *walk.get() == *last) walk.next();
  return walk;
}

std::vector<WaitingRun> DueMoves::due_soon(Timestamp now) const {
  std::vector<WaitingRun> runs;
  if (limits_.planned <= plan_.size()) return runs;
  std::size_t left = std::min(limits_.planned - plan_.size(), limits_.planned_at_once);
  auto walk = unplanned();
  for (; left != 0 && walk.get() != nullptr && walk.get()->due_us <= now.us + plan_until_us;
       walk.next_run()) {
    runs.push_back(walk.run());
    runs.back().count = static_cast<std::uint32_t>(std::min<std::size_t>(runs.back().count, left));
    left -= runs.back().count;
  }
  return runs;
}

Result<bool> DueMoves::plan(Timestamp now, Offset log_end) {
  if (from_.log() == nullptr) return false;
  if (plan_.broken_at()) {
    if (plan_.waits_for_disk() && limits_.mended_at_once < plan_.size()) return false;
    plan_.mend(taken_back_);
  }
  const auto first = unplanned();
  const bool is_soon = first.get() != nullptr && first.get()->due_us <= now.us + plan_ahead_us;
  const std::vector<WaitingRun> runs = is_soon ? due_soon(now) : std::vector<WaitingRun>();
  const std::vector<std::vector<std::byte>> voids = voids_besides(runs);
  if (runs.empty() && voids.empty()) {
    taken_back_.clear();
    return false;
  }
  // There may be more of these than a batch takes. The plan that relies on them is one batch behind them.
  if (const auto written = append_records(*from_.log(), voids, now); !written) return written.error();
  taken_back_.clear();
  std::vector<std::vector<std::byte>> records;
  add_done(records);
  add_plans(records, runs, log_end.value);
  const auto written = append_records(*from_.log(), records, now);
  if (!written) return written.error();
  done_.clear();
  plan_.add(runs, log_end.value, *written);
  return true;
}

/// Returns records of messages whose plan was taken back, and that are not among those that are `planned`
/// now. Without them a start could take such a message for one that has left: it has a lower sequence number
/// than messages that leave before it, and the log may have dropped the part that its former plan names.
std::vector<std::vector<std::byte>> DueMoves::voids_besides(std::span<const WaitingRun> planned) const {
  std::optional<DuePosition> last;
  if (!planned.empty()) last = {planned.back().due_us, planned.back().end() - 1};
  std::map<std::int64_t, std::vector<std::uint64_t>> voids;  // by due time, which stays
  for (const MovePlan::Planned& each : taken_back_) {
    if (each.last() <= last) continue;
    for (std::uint64_t number = each.position.number; number < each.end(); ++number) {
      const auto message = from_.waiting().find(number);
      if (message && !(message->position() <= last)) voids[message->due_us].push_back(number);
    }
  }
  std::vector<std::vector<std::byte>> records;
  for (const auto& [due_us, numbers] : voids) {
    for (std::span<const std::uint64_t> left = numbers; !left.empty();) {
      const std::size_t count = std::min(left.size(), schedule_record_numbers_max);
      records.push_back(encode_due(due_us, left.first(count)));
      left = left.subspan(count);
    }
  }
  return records;
}

/// Adds records of a plan.
void DueMoves::add_plans(std::vector<std::vector<std::byte>>& records, std::span<const WaitingRun> runs,
                         std::uint64_t log_offset) const {
  std::uint64_t sequence = plan_.next_sequence();
  std::vector<std::uint64_t> numbers;
  const auto write = [&] {
    records.push_back(encode_plan(sequence, log_offset, numbers));
    sequence += numbers.size();
    numbers.clear();
  };
  for (const WaitingRun& run : runs) {
    for (std::uint64_t number = run.number; number < run.end(); ++number) {
      numbers.push_back(number);
      if (numbers.size() == schedule_record_numbers_max) write();
    }
  }
  if (!numbers.empty()) write();
}

void DueMoves::log_begins(Offset first) {
  if (plan_.empty() || first.value <= plan_.front().log_offset || was_taken_back_) return;
  plan_.clear(taken_back_);
  was_taken_back_ = true;
}

bool DueMoves::take_due(MoveBatch& batch, Timestamp now, std::size_t bytes_max) {
  batch.builder.clear();
  batch.runs.clear();
  if (from_.log() == nullptr) return take_due_in_memory(batch, now, bytes_max);
  std::uint32_t taken_of_entry = 0;
  for (std::size_t entry = 0; entry < plan_.entries();) {
    const MovePlan::Planned next = plan_.at(entry).rest(taken_of_entry);
    if (now.us < next.position.due_us || !plan_.is_durable(next.sequence)) break;
    if (plan_.broken_at() && *plan_.broken_at() < next.position) break;
    // A batch has consecutive numbers. A plan that was mended leaves some out.
    if (!batch.empty() && next.sequence != batch.first_sequence + batch.builder.record_count()) break;
    auto run = from_.waiting().from_number(next.position.number);
    if (const std::uint32_t gone = gone_from(next, run); gone != 0) {
      if (!batch.empty()) break;  // their numbers are left out: another batch follows
      plan_.drop_front(gone);
      continue;
    }
    run->count = std::min(run->count, next.count);
    const Taken taken = take(batch, *run, next.sequence, bytes_max);
    if (taken.messages == 0) break;
    if (taken.are_damaged) continue;  // they are gone now
    taken_of_entry += taken.messages;
    if (taken.messages < next.count) continue;
    ++entry;
    taken_of_entry = 0;
  }
  return !batch.empty();
}

bool DueMoves::take_due_in_memory(MoveBatch& batch, Timestamp now, std::size_t bytes_max) {
  for (auto walk = from_.waiting().walk(); walk.get() != nullptr && walk.get()->due_us <= now.us;
       walk.next_run()) {
    const std::uint32_t count = walk.run().count;
    if (take(batch, walk.run(), batch.builder.record_count(), bytes_max).messages < count) break;
  }
  return !batch.empty();
}

DueMoves::Taken DueMoves::take(MoveBatch& batch, const WaitingRun& run, std::uint64_t sequence,
                               std::size_t bytes_max) {
  const DelayedBodies bodies = from_.bodies_of(run);
  if (bodies.outcome == DelayedBody::Outcome::unavailable) return {};
  if (bodies.outcome == DelayedBody::Outcome::damaged) {
    from_.drop_damaged(run.number);
    return {.messages = 1, .are_damaged = true};
  }
  MovePacker& builder = batch.builder;
  std::uint32_t least = 0;
  if (batch.empty()) {
    batch.first_sequence = sequence;
    least = 1;
  } else if (builder.kinds() != bodies.kinds) {
    return {};
  }
  const std::size_t bytes_left = bytes_max - std::min(bytes_max, builder.size_bytes());
  const std::size_t most =
      std::min<std::size_t>(move_records_max - builder.record_count(), bytes_left / record_bytes(run.bytes));
  const auto messages = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(bodies.count, least, std::max<std::size_t>(most, least)));
  if (messages == 0) return {};
  builder.add(bodies, messages);
  WaitingRun taken = run;
  taken.count = messages;
  batch.runs.push_back(taken);
  return {.messages = messages};
}

void DueMoves::moved(const MoveBatch& batch, Offset end, Timestamp now) {
  late_us_max_ = std::max(late_us_max_, now.us - batch.runs.front().due_us);
  std::uint64_t sequence = batch.first_sequence;
  for (const WaitingRun& run : batch.runs) {
    if (from_.log() != nullptr) {
      undone_.add({sequence, run.place, end, run.count});
      plan_.drop_front(run.count);
      sequence += run.count;
    }
    from_.forget(run.number, run.count);
    moved_ += run.count;
  }
  was_taken_back_ = false;
}

void DueMoves::log_durable(Offset durable) {
  while (!undone_.empty() && undone_.front().log_end <= durable) {
    note_done(undone_.front().sequence, undone_.front().count);
    undone_.pop_front();
  }
}

void DueMoves::note_done(std::uint64_t sequence, std::uint32_t count) {
  if (!done_.empty() && done_.back().end == sequence) {
    done_.back().end += count;
  } else {
    done_.push_back({sequence, sequence + count});
  }
}

/// Adds records of the messages that are done.
void DueMoves::add_done(std::vector<std::vector<std::byte>>& records) const {
  for (std::span<const NumberRange> left = done_; !left.empty();) {
    const std::size_t count = std::min(left.size(), schedule_record_ranges_max);
    records.push_back(encode_done(left.first(count)));
    left = left.subspan(count);
  }
}

void DueMoves::write_done(Timestamp now) {
  if (done_.empty() || !plan_.empty()) return;
  std::vector<std::vector<std::byte>> records;
  add_done(records);
  if (append_records(*from_.log(), records, now)) done_.clear();
}

void DueMoves::durable_moved() {
  if (from_.log() != nullptr) plan_.durable_up_to(from_.log()->durable_offset());
}

std::optional<Timestamp> DueMoves::next_time() const {
  if (from_.log() == nullptr) {
    const DuePosition* const first = from_.waiting().first();
    return first == nullptr ? std::nullopt : std::optional(Timestamp{first->due_us});
  }
  std::optional<Timestamp> next;
  const bool is_broken = !plan_.empty() && plan_.broken_at() && *plan_.broken_at() < plan_.front().position;
  if (!plan_.empty() && !is_broken && plan_.is_durable(plan_.front().sequence))
    next = {plan_.front().position.due_us};
  if (limits_.planned <= plan_.size()) return next;
  const auto first = unplanned();
  const std::int64_t earliest = std::numeric_limits<std::int64_t>::min() + plan_ahead_us;
  if (first.get() != nullptr) {
    const Timestamp planned_at{std::max(first.get()->due_us, earliest) - plan_ahead_us};
    next = next ? std::min(*next, planned_at) : planned_at;
  }
  return next;
}

void DueMoves::restore(std::span<const UndoneMoves::Undone> undone, std::uint64_t next_sequence,
                       std::vector<MovePlan::Planned> taken_back) {
  for (const UndoneMoves::Undone& each : undone) undone_.add(each);
  taken_back_ = std::move(taken_back);
  plan_.set_next_sequence(next_sequence);
}

}  // namespace lightq::broker
