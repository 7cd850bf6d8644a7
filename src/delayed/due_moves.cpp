/// Plans and packs the messages that are due. Layer: delayed.
#include "delayed/due_moves.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "delayed/schedule_record.hpp"

namespace lightq::broker {

namespace {

// With plan_ahead_us before the first one, everything that is due within this time is planned, so that a
// steady stream needs a record only now and then.
constexpr std::int64_t plan_until_us = 3 * DueMoves::plan_ahead_us;
constexpr std::uint32_t move_records_max = 4096;

}  // namespace

std::span<std::byte> MoveBatch::finish(std::uint64_t id, std::uint64_t first) {
  const auto bytes = builder.finish({.producer_id = id, .first_sequence = first});
  // The records were added as bytes, so the builder does not know their kinds.
  store_little_endian(bytes.data() + batch_layout::flags, kinds.bits());
  store_little_endian(bytes.data() + batch_layout::body_crc, batch_body_crc(bytes));
  return bytes;
}

/// Returns the first message behind the planned ones, or null.
const DuePosition* DueMoves::first_unplanned() const {
  const auto last = plan_.last();
  if (!last) return from_.waiting().first();
  auto walk = from_.waiting().walk(*last);
  if (walk.get() != nullptr && *walk.get() == *last) walk.next();
  return walk.get();
}

std::vector<DuePosition> DueMoves::due_soon(Timestamp now) const {
  std::vector<DuePosition> positions;
  const DuePosition* const first = first_unplanned();
  if (first == nullptr) return positions;
  auto walk = from_.waiting().walk(*first);
  for (; walk.get() != nullptr && walk.get()->due_us <= now.us + plan_until_us; walk.next()) {
    if (limits_.planned <= plan_.size() + positions.size()) break;
    if (limits_.planned_at_once <= positions.size()) break;
    positions.push_back(*walk.get());
  }
  return positions;
}

Result<bool> DueMoves::plan(Timestamp now, Offset log_end) {
  if (from_.log() == nullptr) return false;
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
  const auto written = append_records(*from_.log(), records, now);
  if (!written) return written.error();
  done_.clear();
  plan_.add(positions, log_end.value, *written);
  return true;
}

void DueMoves::log_begins(Offset first) {
  if (plan_.empty() || first.value <= plan_.front().log_offset || was_taken_back_) return;
  plan_.clear();
  was_taken_back_ = true;
}

bool DueMoves::take_due(MoveBatch& batch, Timestamp now, std::size_t bytes_max) {
  batch.builder.clear();
  batch.positions.clear();
  if (from_.log() == nullptr) return take_due_in_memory(batch, now, bytes_max);
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

bool DueMoves::take_due_in_memory(MoveBatch& batch, Timestamp now, std::size_t bytes_max) {
  for (;;) {
    const std::size_t taken = batch.positions.size();
    auto walk = from_.waiting().walk(taken == 0 ? DuePosition{} : batch.positions.back());
    if (taken != 0) walk.next();
    if (walk.get() == nullptr || now.us < walk.get()->due_us) break;
    if (take(batch, *walk.get(), taken, bytes_max) == Taken::stop) break;
  }
  return !batch.positions.empty();
}

DueMoves::Taken DueMoves::take(MoveBatch& batch, DuePosition position, std::uint64_t sequence,
                               std::size_t bytes_max) {
  const WaitingMessage* const message = from_.waiting().find(position.number);
  if (message == nullptr || message->due_us != position.due_us) return Taken::skipped;  // it was cancelled
  const DelayedBody body = from_.body_of(*message);
  if (body.outcome == DelayedBody::Outcome::unavailable) return Taken::stop;
  if (body.outcome == DelayedBody::Outcome::damaged) {
    from_.drop_damaged(position.number);
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

void DueMoves::moved(const MoveBatch& batch, Offset end, Timestamp now) {
  late_us_max_ = std::max(late_us_max_, now.us - batch.positions.front().due_us);
  std::uint64_t sequence = batch.first_sequence;
  for (const DuePosition& position : batch.positions) {
    if (from_.log() != nullptr) {
      undone_.add({sequence++, from_.waiting().find(position.number)->place, end});
      plan_.drop_front();
    }
    from_.forget(position.number);
  }
  moved_ += batch.positions.size();
  was_taken_back_ = false;
}

void DueMoves::log_durable(Offset durable) {
  while (!undone_.empty() && undone_.front().log_end <= durable) {
    note_done(undone_.front().sequence);
    undone_.pop_front();
  }
}

void DueMoves::note_done(std::uint64_t sequence) {
  if (!done_.empty() && done_.back().end == sequence) {
    ++done_.back().end;
  } else {
    done_.push_back({sequence, sequence + 1});
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
  const DuePosition* const first = limits_.planned <= plan_.size() ? nullptr : first_unplanned();
  const std::int64_t earliest = std::numeric_limits<std::int64_t>::min() + plan_ahead_us;
  if (first != nullptr) {
    const Timestamp planned_at{std::max(first->due_us, earliest) - plan_ahead_us};
    next = next ? std::min(*next, planned_at) : planned_at;
  }
  return next;
}

void DueMoves::restore(std::span<const UndoneMoves::Undone> undone, std::uint64_t next_sequence) {
  for (const UndoneMoves::Undone& each : undone) undone_.add(each);
  plan_.set_next_sequence(next_sequence);
}

}  // namespace lightq::broker
