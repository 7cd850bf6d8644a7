/// Keeps delayed messages, plans and packs those that leave, and drops old files. Layer: delayed.
#include "delayed/schedule.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

namespace lightq::broker {

namespace {

// With plan_ahead_us before the first one, everything that is due within this time is planned, so that a
// steady stream needs a record only now and then.
constexpr std::int64_t plan_until_us = 3 * Schedule::plan_ahead_us;
constexpr std::uint32_t move_records_max = 4096;

Error error_of(const log::BatchLog& log, log::AppendOutcome outcome) {
  if (outcome == log::AppendOutcome::failed) return log.last_error();
  return {ErrorCode::no_space, "the schedule has no space: " + log.last_error().message};
}

}  // namespace

std::span<std::byte> MoveBatch::finish(std::uint64_t id, std::uint64_t first) {
  const auto bytes = builder.finish({.producer_id = id, .first_sequence = first});
  // The records were added as bytes, so the builder does not know their kinds.
  store_little_endian(bytes.data() + batch_layout::flags, kinds.bits());
  store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
  return bytes;
}

Schedule::Schedule(log::BatchLog& log, const ScheduleLimits& limits)
    : log_(&log), limits_(limits), stored_(std::make_unique<LogBodies>(log)) {}

std::uint64_t Schedule::next_number() const {
  return log_ == nullptr ? next_in_memory_ : log_->next_offset().value;
}

void Schedule::add(const WaitingMessage& message) {
  waiting_.add(message);
  plan_.note(message.position());
}

/// Removes a message from all that is in memory.
void Schedule::forget(std::uint64_t number) {
  const WaitingMessage* const found = waiting_.find(number);
  if (found == nullptr) return;
  if (log_ == nullptr) {
    kept_.drop(found->place);
  } else if (found->place != number) {
    relocated_.erase(found->place);
  }
  waiting_.remove(number);
}

log::AppendResult Schedule::append(std::span<std::byte> batch, Timestamp now) {
  const BatchView view = BatchView::trusted(batch.data());
  assert(!view.is_compressed() && view.kinds().has(AttributeKinds::dues));
  if (log_ == nullptr) return append_to_memory(view, now);
  const log::AppendResult appended = log_->append(batch, now);
  if (appended.outcome != log::AppendOutcome::appended) return appended;
  std::uint64_t number = appended.base.value;
  for (auto record = view.records(); !record.done(); record.next(), ++number) {
    const std::size_t bytes = without_due(view.kinds(), record.message()).size();
    const Timestamp due = waiting_until(record.attributes().due(), now);
    add({number, due.us, number, static_cast<std::uint32_t>(bytes)});
  }
  return appended;
}

log::AppendResult Schedule::append_to_memory(const BatchView& batch, Timestamp now) {
  const std::uint64_t base = next_in_memory_;
  std::optional<std::uint64_t> unindexed;  // stored, and not in the index yet
  try {
    for (auto record = batch.records(); !record.done(); record.next()) {
      const ByteView message = without_due(batch.kinds(), record.message());
      const std::uint64_t place = kept_.add(without_due(batch.kinds()), now, message);
      unindexed = place;
      add({next_in_memory_, waiting_until(record.attributes().due(), now).us, place,
           static_cast<std::uint32_t>(message.size())});
      unindexed.reset();
      ++next_in_memory_;
    }
  } catch (...) {
    if (unindexed) kept_.drop(*unindexed);
    for (std::uint64_t number = base; number < next_in_memory_; ++number) forget(number);
    next_in_memory_ = base;
    throw;
  }
  return {log::AppendOutcome::appended, {base}};
}

DelayedBody Schedule::body_of(const WaitingMessage& message) {
  return log_ == nullptr ? kept_.read(message.place) : stored_->read(message.place);
}

/// Appends records of the broker as one batch. Returns the end of the log behind it.
Result<Offset> Schedule::append_records(std::span<const std::vector<std::byte>> records, Timestamp now) {
  BatchBuilder batch;
  for (const auto& record : records) batch.add(record);
  const auto appended = log_->append(batch.finish(), now);
  if (appended.outcome != log::AppendOutcome::appended) return error_of(*log_, appended.outcome);
  return log_->next_offset();
}

Result<void> Schedule::cancel(std::span<const std::uint64_t> numbers, Timestamp now) {
  if (numbers.empty()) return {};
  if (log_ != nullptr) {
    const std::vector<std::byte> record = encode_cancel(numbers);
    if (const auto written = append_records({&record, 1}, now); !written) return written.error();
  }
  for (const std::uint64_t number : numbers) {
    forget(number);
  }
  cancelled_.add(numbers, log_ == nullptr ? 0 : log_->next_offset().value - 1);
  counts_.cancelled += numbers.size();
  return {};
}

bool Schedule::was_cancelled(std::uint64_t number) const {
  return cancelled_.contains(number);
}

Result<void> Schedule::set_due(std::span<const std::uint64_t> numbers, Timestamp due, Timestamp now) {
  if (numbers.empty()) return {};
  if (log_ != nullptr) {
    const std::vector<std::byte> record = encode_due(due.us, numbers);
    if (const auto written = append_records({&record, 1}, now); !written) return written.error();
  }
  for (const std::uint64_t number : numbers) {
    waiting_.set_due(number, due.us);
    plan_.note({due.us, number});
  }
  return {};
}

/// Returns the first message behind the planned ones, or null.
const DuePosition* Schedule::first_unplanned() const {
  const auto last = plan_.last();
  if (!last) return waiting_.first();
  auto walk = waiting_.walk(*last);
  if (walk.get() != nullptr && *walk.get() == *last) walk.next();
  return walk.get();
}

std::vector<DuePosition> Schedule::due_soon(Timestamp now) const {
  std::vector<DuePosition> positions;
  const DuePosition* const first = first_unplanned();
  if (first == nullptr) return positions;
  auto walk = waiting_.walk(*first);
  for (; walk.get() != nullptr && walk.get()->due_us <= now.us + plan_until_us; walk.next()) {
    if (limits_.planned <= plan_.size() + positions.size()) break;
    if (limits_.planned_at_once <= positions.size()) break;
    positions.push_back(*walk.get());
  }
  return positions;
}

Result<bool> Schedule::plan(Timestamp now, Offset log_end) {
  if (log_ == nullptr) return false;
  if (plan_.broken_at()) {
    if (plan_.waits_for_disk() && limits_.mended_at_once < plan_.size()) return false;
    plan_.mend();
  }
  const DuePosition* const first = first_unplanned();
  if (first == nullptr || now.us + plan_ahead_us < first->due_us) return false;
  const std::vector<DuePosition> positions = due_soon(now);
  if (positions.empty()) return false;
  std::vector<std::vector<std::byte>> records;
  add_done(records);
  std::vector<std::uint64_t> numbers;
  std::uint64_t sequence = plan_.next_sequence();
  for (std::size_t at = 0; at < positions.size(); at += numbers.size()) {
    numbers.clear();
    const std::size_t end = std::min(positions.size(), at + schedule_record_numbers_max);
    for (std::size_t each = at; each < end; ++each) numbers.push_back(positions[each].number);
    records.push_back(encode_plan(sequence, log_end.value, numbers));
    sequence += numbers.size();
  }
  const auto written = append_records(records, now);
  if (!written) return written.error();
  done_.clear();
  plan_.add(positions, log_end.value, *written);
  return true;
}

void Schedule::log_begins(Offset first) {
  if (plan_.empty() || first.value <= plan_.front().log_offset || was_taken_back_) return;
  plan_.clear();
  was_taken_back_ = true;
}

bool Schedule::take_due(MoveBatch& batch, Timestamp now, std::size_t bytes_max) {
  batch.builder.clear();
  batch.positions.clear();
  if (log_ == nullptr) {
    for (;;) {
      const std::size_t taken = batch.positions.size();
      auto walk = waiting_.walk(taken == 0 ? DuePosition{} : batch.positions.back());
      if (taken != 0) walk.next();
      if (walk.get() == nullptr || now.us < walk.get()->due_us) break;
      if (take(batch, *walk.get(), taken, bytes_max) == Taken::stop) break;
    }
    return !batch.positions.empty();
  }
  for (std::size_t at = 0; at < plan_.size();) {
    const MovePlan::Planned next = plan_.at(at);
    if (now.us < next.position.due_us || !plan_.is_durable(next.sequence)) break;
    if (plan_.broken_at() && *plan_.broken_at() < next.position) break;
    // A batch has consecutive numbers. A plan that was mended leaves some out.
    if (!batch.positions.empty() && next.sequence != batch.first_sequence + batch.positions.size()) break;
    const Taken taken = take(batch, next.position, next.sequence, bytes_max);
    if (taken == Taken::stop) break;
    if (taken == Taken::yes) ++at;
    if (taken == Taken::skipped && at == 0) plan_.drop_front();
    if (taken == Taken::skipped && at != 0) break;  // its number is left out: another batch follows
  }
  return !batch.positions.empty();
}

Schedule::Taken Schedule::take(MoveBatch& batch, DuePosition position, std::uint64_t sequence,
                               std::size_t bytes_max) {
  const WaitingMessage* const message = waiting_.find(position.number);
  if (message == nullptr || message->due_us != position.due_us) return Taken::skipped;  // it was cancelled
  const DelayedBody body = body_of(*message);
  if (body.outcome == DelayedBody::Outcome::unavailable) return Taken::stop;
  if (body.outcome == DelayedBody::Outcome::damaged) {
    drop_damaged(position.number);
    return Taken::skipped;
  }
  BatchBuilder& builder = batch.builder;
  if (batch.positions.empty()) {
    batch.kinds = body.kinds;
    batch.first_sequence = sequence;
  } else if (batch.kinds != body.kinds || move_records_max <= builder.record_count() ||
             bytes_max < builder.size_bytes() + record_bytes(body.message.size())) {
    return Taken::stop;
  }
  std::byte* const to = builder.add_uninitialized(body.message.size());
  if (!body.message.empty()) std::memcpy(to, body.message.data(), body.message.size());
  batch.positions.push_back(position);
  return Taken::yes;
}

void Schedule::drop_damaged(std::uint64_t number) {
  forget(number);
  ++counts_.corrupt;
}

Result<std::uint64_t> Schedule::give_up_first(Timestamp now) {
  const std::uint64_t number = log_ == nullptr ? waiting_.first()->number : plan_.front().position.number;
  if (log_ != nullptr) {
    const std::vector<std::byte> record = encode_cancel({&number, 1});
    if (const auto written = append_records({&record, 1}, now); !written) return written.error();
  }
  forget(number);
  return number;
}

void Schedule::moved(const MoveBatch& batch, Offset end, Timestamp now) {
  counts_.late_us_max = std::max(counts_.late_us_max, now.us - batch.positions.front().due_us);
  std::uint64_t sequence = batch.first_sequence;
  for (const DuePosition& position : batch.positions) {
    if (log_ != nullptr) {
      undone_.add({sequence++, waiting_.find(position.number)->place, end});
      plan_.drop_front();
    }
    forget(position.number);
  }
  counts_.moved += batch.positions.size();
  was_taken_back_ = false;
}

void Schedule::log_durable(Offset durable) {
  while (!undone_.empty() && undone_.front().log_end <= durable) {
    note_done(undone_.front().sequence);
    undone_.pop_front();
  }
}

void Schedule::note_done(std::uint64_t sequence) {
  if (!done_.empty() && done_.back().end == sequence) {
    ++done_.back().end;
  } else {
    done_.push_back({sequence, sequence + 1});
  }
}

/// Adds records of the messages that are done.
void Schedule::add_done(std::vector<std::vector<std::byte>>& records) {
  for (std::span<const NumberRange> left = done_; !left.empty();) {
    const std::size_t count = std::min(left.size(), schedule_record_ranges_max);
    records.push_back(encode_done(left.first(count)));
    left = left.subspan(count);
  }
}

void Schedule::durable_moved() {
  if (log_ != nullptr) plan_.durable_up_to(log_->durable_offset());
}

std::optional<Timestamp> Schedule::next_time() const {
  if (log_ == nullptr) {
    const DuePosition* const first = waiting_.first();
    return first == nullptr ? std::nullopt : std::optional(Timestamp{first->due_us});
  }
  std::optional<Timestamp> next;
  const bool is_broken = !plan_.empty() && plan_.broken_at() && *plan_.broken_at() < plan_.front().position;
  if (!plan_.empty() && !is_broken && plan_.is_durable(plan_.front().sequence))
    next = {plan_.front().position.due_us};
  const DuePosition* const first = limits_.planned <= plan_.size() ? nullptr : first_unplanned();
  const std::int64_t earliest = std::numeric_limits<std::int64_t>::min() + plan_ahead_us;
  if (first != nullptr) {
    const Timestamp planned_at{std::max(first->due_us, earliest) - plan_ahead_us};
    next = next ? std::min(*next, planned_at) : planned_at;
  }
  return next;
}

/// Returns the lowest place of a message that waits.
std::optional<std::uint64_t> Schedule::lowest_place() {
  const WaitingMessage* in_place = waiting_.from_number(in_place_from_);
  while (in_place != nullptr && in_place->place != in_place->number) {
    in_place_from_ = in_place->number + 1;
    in_place = waiting_.from_number(in_place_from_);
  }
  std::optional<std::uint64_t> lowest;
  if (in_place != nullptr) lowest = in_place->place;
  if (const Relocated* const copied = relocated_.first())
    lowest = lowest ? std::min(*lowest, copied->place) : copied->place;
  return lowest;
}

/// Copies the messages with the lowest places to the end of the log. Stops at one that is under way. Returns
/// false if nothing was copied.
bool Schedule::copy_oldest(Timestamp now) {
  std::vector<std::vector<std::byte>> records;
  std::vector<std::uint64_t> numbers;
  std::uint64_t at = lowest_place().value_or(0);
  const std::uint64_t from = at;
  std::size_t bytes = 0;
  bool any_dropped = false;
  const auto next_in_place = [&](std::uint64_t number) {
    const WaitingMessage* found = waiting_.from_number(number);
    while (found != nullptr && found->place != found->number) found = waiting_.from_number(found->number + 1);
    return found;
  };
  while (bytes < limits_.copy_bytes) {
    const Relocated* const copied = relocated_.at(relocated_.lower_bound(at));
    const WaitingMessage* message = next_in_place(std::max(at, in_place_from_));
    if (copied != nullptr && (message == nullptr || copied->place < message->place))
      message = waiting_.find(copied->number);
    if (message == nullptr || is_under_way(*message)) break;
    at = message->place + 1;
    const DelayedBody body = body_of(*message);
    if (body.outcome == DelayedBody::Outcome::unavailable) break;
    if (body.outcome == DelayedBody::Outcome::damaged) {
      drop_damaged(message->number);
      any_dropped = true;
      continue;
    }
    records.push_back(
        encode_copy({message->number, message->due_us, body.arrived.us, body.kinds, body.message}));
    numbers.push_back(message->number);
    bytes += records.back().size();
  }
  if (records.empty()) return any_dropped;
  const auto written = append_records(records, now);
  if (!written) return false;
  std::uint64_t place = written->value - records.size();
  for (const std::uint64_t number : numbers) {
    const WaitingMessage* const message = waiting_.find(number);
    if (message->place != number) relocated_.erase(message->place);
    waiting_.set_place(number, place);
    relocated_.insert({place++, number});
  }
  if (log_->durable_offset() >= copied_to_) copied_from_ = from;
  copied_to_ = *written;
  return true;
}

/// Drops the files before everything that a start needs.
void Schedule::drop_files() {
  std::uint64_t needed = lowest_place().value_or(log_->next_offset().value);
  needed = std::min(needed, undone_.lowest_place().value_or(needed));
  if (log_->durable_offset() < copied_to_) needed = std::min(needed, copied_from_);
  if (log_->first_offset().value < needed) log_->drop_before({needed});
  cancelled_.drop_records_before(log_->first_offset().value);
}

bool Schedule::wants_flush() const {
  return log_ != nullptr && log_->durable_offset() < copied_to_;
}

bool Schedule::maintain(Timestamp now) {
  if (log_ == nullptr) return false;
  if (!done_.empty() && plan_.empty()) {
    std::vector<std::vector<std::byte>> records;
    add_done(records);
    if (append_records(records, now)) done_.clear();
  }
  drop_files();
  if (wants_flush() || undone_.size() >= limits_.planned) return false;
  const std::uint64_t live = charged_bytes();
  if (log_->stored_bytes() <= 2 * live + limits_.garbage_bytes) return false;
  return copy_oldest(now);
}

DelayedStats Schedule::stats() const {
  DelayedStats stats = counts_;
  stats.messages = waiting_.size();
  stats.bytes = charged_bytes();
  if (const DuePosition* const first = waiting_.first()) stats.next_due = Timestamp{first->due_us};
  return stats;
}

}  // namespace lightq::broker
