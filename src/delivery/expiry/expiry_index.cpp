/// The messages of a topic that have expired, and those that will. Layer: delivery.
#include "delivery/expiry/expiry_index.hpp"

#include <chrono>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"
#include "delivery/batches/header_content.hpp"
#include "delivery/batches/unpacked.hpp"

namespace lightq::broker {

namespace {
// The most headers that a call reads to find the end of the expired prefix, before it searches by time.
constexpr int prefix_steps_max = 32;
// The most work of a call to read noted messages.
constexpr std::uint64_t noted_work_max = 256 * limits::KiB;
// The longest time between two looks at the wall clock, which may have been set.
constexpr std::chrono::milliseconds look_interval{450};
constexpr std::chrono::milliseconds look_interval_min{1};
}  // namespace

void ExpiryIndex::note(OffsetRange range) {
  range.begin = std::max(range.begin, log_.first_offset());
  if (range.begin >= range.end) return;
  if (!first_noted_) first_noted_ = range.begin;
  first_noted_ = std::min(*first_noted_, range.begin);
  unread_.add(range);
}

void ExpiryIndex::expect(OffsetRange range, Timestamp expiry, Timestamp wall) {
  first_noted_ = std::min(first_noted_.value_or(range.begin), range.begin);
  times_.add(range, expiry, wall);
}

/// Adds messages to the expired ones. Those that the log has dropped are left out.
void ExpiryIndex::expire(OffsetRange range) {
  range.begin = std::max(range.begin, log_.first_offset());
  while (range.begin < range.end) {
    const Part part = part_at(range.begin);
    const Offset end = std::min(part.end, range.end);
    if (!part.expired) {
      TurnWork::add(2 * TurnWork::set_changed);
      fresh_.add({range.begin, end});
      expired_.add({range.begin, end});
    }
    range.begin = end;
  }
}

// --- Finding them in time ---

bool ExpiryIndex::tend(Timestamp wall, SteadyTime now) {
  bool more = false;
  is_pending_ = false;
  if (ttl_ms_ != 0) more |= extend_prefix(wall, now);
  if (!unread_.empty()) more |= read_noted(wall, now);
  if (!times_.empty()) {
    more |= times_.release(wall, [this](OffsetRange run) { expire(run); });
    times_.sweep(log_.first_offset());
  }
  if (first_noted_ && unread_.empty() && times_.empty() && expired_.empty()) first_noted_.reset();
  return more;
}

/// Moves prefix_ behind the messages that have expired by the topic's time.
bool ExpiryIndex::extend_prefix(Timestamp wall, SteadyTime now) {
  if (prefix_ < log_.first_offset()) {
    prefix_ = log_.first_offset();
    prefix_due_.reset();
  }
  if ((prefix_due_ && wall < *prefix_due_) || now < prefix_again_) return false;
  const Offset from = prefix_;
  bool ends = false;
  prefix_due_.reset();
  for (int steps = 0; !ends && steps < prefix_steps_max; ++steps) {
    log::ReadPosition place{prefix_};
    TurnWork::add(TurnWork::batch_looked_at);
    const log::ReadResult read = log_.read_header(place);
    switch (read.outcome) {
      case log::ReadOutcome::batch: {
        const Timestamp due = expiry_after(read.batch.append_time(), ttl_ms_);
        ends = wall < due;
        if (ends) {
          prefix_due_ = due;
        } else {
          prefix_ = read.batch.end_offset();
        }
        break;
      }
      case log::ReadOutcome::trimmed:
      case log::ReadOutcome::damaged: prefix_ = std::max(prefix_, read.next); break;
      case log::ReadOutcome::unavailable:
      case log::ReadOutcome::pending: prefix_again_ = read_again_after(now); [[fallthrough]];
      case log::ReadOutcome::end: ends = true; break;
    }
  }
  if (!ends) {  // there may be many more: finds their end by a search
    const log::FoundByTime found = log_.first_since({wall.us - ttl_ms_ * 1000 + 1});
    TurnWork::add(found.batches_passed * TurnWork::batch_passed +
                  found.segments_passed * TurnWork::segment_passed);
    prefix_ = std::clamp(found.offset, prefix_, log_.next_offset());
  }
  expire({from, prefix_});
  return !ends && prefix_ < log_.next_offset();
}

/// Reads noted messages, in the order of their offsets.
bool ExpiryIndex::read_noted(Timestamp wall, SteadyTime now) {
  if (now < read_again_) return false;
  const std::uint64_t work_from = TurnWork::bytes();
  log::ReadPosition place{};
  while (!unread_.empty()) {
    if (TurnWork::bytes() - work_from > noted_work_max) return true;
    const OffsetRange run = *unread_.first_behind(Offset{0});
    place.offset = std::max(run.begin, log_.first_offset());
    TurnWork::add(TurnWork::batch_looked_at);
    log::ReadResult read = log_.read_header(place);
    const bool has_headers =
        read.outcome == log::ReadOutcome::batch && read.batch.kinds().has(AttributeKinds::headers);
    if (has_headers) read = log_.read(place);
    switch (read.outcome) {
      case log::ReadOutcome::batch: {
        const OffsetRange range{place.offset, std::min(run.end, read.batch.end_offset())};
        if (has_headers && !index(read.batch, range, wall)) {
          read_again_ = read_again_after(now);
          return false;
        }
        unread_.remove({Offset{0}, range.end});
        break;
      }
      case log::ReadOutcome::trimmed:
      case log::ReadOutcome::damaged: unread_.remove({Offset{0}, read.next}); break;
      case log::ReadOutcome::end: unread_.remove({Offset{0}, run.end}); break;
      case log::ReadOutcome::pending: is_pending_ = true; return false;
      case log::ReadOutcome::unavailable: read_again_ = read_again_after(now); return false;
    }
  }
  return false;
}

/// Adds the messages of `range` that have a time to live to times_. Returns false if there is no memory to
/// unpack the batch.
bool ExpiryIndex::index(const BatchView& batch, OffsetRange range, Timestamp wall) {
  const auto plain = unpacked(batch);
  if (!plain) return false;
  if (!*plain) return true;  // damaged: nobody receives its messages
  TurnWork::add(TurnWork::record_passed * batch.record_count());
  OffsetRange pending{range.begin, range.begin};
  Timestamp pending_expiry;
  Offset at = batch.base_offset();
  for (auto record = (*plain)->records(); !record.done(); record.next(), at = at + 1) {
    if (at < range.begin) continue;
    if (range.end <= at) break;
    const auto expiry = expiry_of(record.attributes(), batch.append_time());
    if (!expiry) continue;
    if (pending.end != at || *expiry != pending_expiry) {
      times_.add(pending, pending_expiry, wall);
      pending = {at, at};
      pending_expiry = *expiry;
    }
    pending.end = at + 1;
  }
  times_.add(pending, pending_expiry, wall);
  return true;
}

SteadyTime ExpiryIndex::next_timer(Timestamp wall, SteadyTime now) const {
  SteadyTime next = never;
  if (!unread_.empty() && !is_pending_) next = std::max(read_again_, now);
  Timestamp due = times_.next();
  if (ttl_ms_ != 0 && prefix_ < log_.next_offset()) {
    if (now < prefix_again_) {
      next = std::min(next, prefix_again_);
    } else {
      due = std::min(due, prefix_due_.value_or(wall));
    }
  }
  if (due == ExpiryTimes::nothing_due) return next;
  const std::int64_t ahead_us = due <= wall ? 0 : due.us - wall.us;
  const auto wait = std::chrono::microseconds(
      std::min<std::int64_t>(ahead_us, std::chrono::microseconds(look_interval).count()));
  return std::min(next, now + std::max<std::chrono::microseconds>(wait, look_interval_min));
}

void ExpiryIndex::forget_before(Offset first) {
  const OffsetRange gone{Offset{0}, first};
  TurnWork::add(TurnWork::set_changed);
  expired_.remove(gone);
  fresh_.remove(gone);
  unread_.remove(gone);
}

// --- The moment of delivery ---

Result<void> ExpiryIndex::check(const BatchView& batch, OffsetRange range, Timestamp wall) {
  if (ttl_ms_ != 0 && expiry_after(batch.append_time(), ttl_ms_) <= wall) {
    expire(range);
    return {};
  }
  if (!batch.kinds().has(AttributeKinds::headers)) return {};
  const OffsetRange whole{batch.base_offset(), batch.end_offset()};
  if (!unread_.empty()) {
    const auto run = unread_.first_behind(range.begin);
    if (run && run->begin < range.end) {
      const auto plain = unpacked(batch);
      if (!plain) return plain.error();
      while (const auto noted = unread_.first_behind(whole.begin)) {
        const OffsetRange part{std::max(noted->begin, whole.begin), std::min(noted->end, whole.end)};
        if (part.begin >= part.end || !index(batch, part, wall)) break;
        unread_.remove(part);
      }
      return check_records(batch, wall);
    }
  }
  if (!times_.may_have_expired(range, wall)) return {};
  if (checked_ == whole && checked_at_ <= wall && wall < checked_until_) return {};
  return check_records(batch, wall);
}

/// Compares the exact times of all messages of a batch.
Result<void> ExpiryIndex::check_records(const BatchView& batch, Timestamp wall) {
  const auto plain = unpacked(batch);
  if (!plain) return plain.error();
  if (!*plain) return {};
  TurnWork::add(TurnWork::record_passed * batch.record_count());
  checked_ = {batch.base_offset(), batch.end_offset()};
  checked_at_ = wall;
  checked_until_ = ExpiryTimes::nothing_due;
  OffsetRange run{checked_.begin, checked_.begin};
  Offset at = checked_.begin;
  for (auto record = (*plain)->records(); !record.done(); record.next(), at = at + 1) {
    const auto expiry = expiry_of(record.attributes(), batch.append_time());
    if (expiry && wall < *expiry) checked_until_ = std::min(checked_until_, *expiry);
    if (!expiry || wall < *expiry) continue;
    if (run.end != at) {
      expire(run);
      run = {at, at};
    }
    run.end = at + 1;
  }
  expire(run);
  return {};
}

}  // namespace lightq::broker
