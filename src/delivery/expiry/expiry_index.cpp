/// The messages of a topic that have expired, and those that will. Layer: delivery.
#include "delivery/expiry/expiry_index.hpp"

#include <chrono>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"
#include "delivery/batches/header_content.hpp"
#include "delivery/batches/unpacked.hpp"
#include "delivery/state/set_merge.hpp"
#include "log/carried/carried_records.hpp"

namespace lightq::broker {

namespace {
// The most headers that a call reads to find the end of the expired prefix, before it searches by time.
constexpr int prefix_steps_max = 32;
// The most parts that a call adds to the expired prefix: the messages between those that had expired before.
constexpr std::size_t prefix_parts_max = 1024;
// The most work of a call to read noted messages.
constexpr std::uint64_t noted_work_max = 256 * limits::KiB;
// The time between two calls while more is due than a call finds.
constexpr std::chrono::milliseconds tend_interval{1};
// The most hours whose messages a call notes to read them again.
constexpr int unlisted_max = 64;
// The most expired runs in which a call looks for messages that are not carried over any more.
constexpr int gone_runs_max = 64;

/// Returns the messages that were carried over from the log, or null if there are none.
const log::OffsetSet* carried_over_from(log::BatchLog& log) {
  const log::CarriedRecords* const carried = log.carried();
  return carried == nullptr || carried->offsets().empty() ? nullptr : &carried->offsets();
}
}  // namespace

/// Returns the offset of the first message that can be read, carried over or in the log.
Offset ExpiryIndex::lowest_stored() const {
  const Offset first = log_.first_offset();
  const log::OffsetSet* const carried = carried_over_from(log_);
  return carried == nullptr ? first : std::min(first, carried->first());
}

void ExpiryIndex::note(OffsetRange range) {
  range.begin = std::max(range.begin, lowest_stored());
  if (range.begin < range.end) unread_.add(range);
}

void ExpiryIndex::expect(OffsetRange range, Timestamp expiry, Timestamp wall) {
  if (range.begin >= range.end) return;
  has_own_ = true;
  own_ = own_.begin == own_.end
             ? range
             : OffsetRange{std::min(own_.begin, range.begin), std::max(own_.end, range.end)};
  times_.add(range, expiry, wall);
}

std::optional<Offset> ExpiryIndex::first_noted() const {
  std::optional<Offset> first;
  const Offset lowest = lowest_stored();
  if (own_.begin < own_.end && lowest < own_.end) first = std::max(own_.begin, lowest);
  if (!unread_.empty() && lowest < unread_.end()) {
    const Offset unread = std::max(unread_.first(), lowest);
    first = std::min(first.value_or(unread), unread);
  }
  return first;
}

/// Adds messages to the expired ones. Those that can no longer be read are left out.
void ExpiryIndex::expire(OffsetRange range) {
  expire_some(range, std::numeric_limits<std::size_t>::max());
}

/// Does the same for at most so many parts of the range. Returns the offset that it has reached.
Offset ExpiryIndex::expire_some(OffsetRange range, std::size_t parts_max) {
  const Offset first = log_.first_offset();
  const log::OffsetSet* const carried = range.begin < first ? carried_over_from(log_) : nullptr;
  if (carried != nullptr) {
    const Offset end = std::min(range.end, first);
    for (Offset at = range.begin; at < end;) {
      TurnWork::add(TurnWork::range_passed);
      const auto run = carried->first_behind(at);
      if (!run || end <= run->begin) break;
      const OffsetRange part{std::max(at, run->begin), std::min(end, run->end)};
      at = expire_stored(part, parts_max);
      if (at < part.end || parts_max == 0) return at;
    }
  }
  return std::max(range.begin, expire_stored({std::max(range.begin, first), range.end}, parts_max));
}

/// Adds messages to the expired ones, in at most `parts_left` parts, which it counts down. Returns the offset
/// that it has reached.
Offset ExpiryIndex::expire_stored(OffsetRange range, std::size_t& parts_left) {
  for (; range.begin < range.end && parts_left != 0; --parts_left) {
    const Part part = part_at(range.begin);
    const Offset end = std::min(part.end, range.end);
    TurnWork::add(TurnWork::range_passed);
    if (!part.expired) {
      TurnWork::add(2 * TurnWork::set_changed);
      fresh_.add({range.begin, end});
      expired_.add({range.begin, end});
    }
    range.begin = end;
  }
  return range.begin;
}

// --- Finding them in time ---

bool ExpiryIndex::tend(Timestamp wall, SteadyTime now) {
  bool more = false;
  is_pending_ = false;
  if (ttl_ms_ != 0) more |= extend_prefix(wall, now);
  more |= note_unlisted(wall);
  if (!unread_.empty()) more |= read_noted(wall, now);
  if (!times_.empty()) {
    more |= times_.release(wall, [this](OffsetRange run) { expire(run); });
    times_.sweep(log_.first_offset(), carried_over_from(log_));
  }
  if (own_.end <= lowest_stored() || (unread_.empty() && times_.empty() && expired_.empty())) own_ = {};
  return more;
}

/// Moves prefix_ behind the messages that have expired by the topic's time. Those that were carried over are
/// read one by one.
bool ExpiryIndex::extend_prefix(Timestamp wall, SteadyTime now) {
  if (prefix_ < log_.first_offset()) {
    const log::OffsetSet* const carried = carried_over_from(log_);
    if (carried == nullptr || !carried->contains(prefix_)) prefix_due_.reset();
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
  if (!ends && log_.first_offset() <= prefix_) {  // there may be many more: finds their end by a search
    const log::FoundByTime found = log_.first_since({wall.us - ttl_ms_ * 1000 + 1});
    TurnWork::add(found.batches_passed * TurnWork::batch_passed +
                  found.segments_passed * TurnWork::segment_passed);
    prefix_ = std::clamp(found.offset, prefix_, log_.next_offset());
  }
  const Offset reached = expire_some({from, prefix_}, prefix_parts_max);
  if (reached < prefix_) {
    prefix_ = reached;
    prefix_due_.reset();
    return true;
  }
  return !ends && prefix_ < log_.next_offset();
}

/// Notes messages whose times are read again, because their hour is near. Returns true if there may be more.
bool ExpiryIndex::note_unlisted(Timestamp wall) {
  for (int hours = 0; hours < unlisted_max; ++hours) {
    const auto unlisted = times_.take_unlisted(wall);
    if (!unlisted) return false;
    const OffsetRange range{std::max(unlisted->range.begin, lowest_stored()), unlisted->range.end};
    if (range.end <= range.begin) continue;
    again_until_ = again_.empty() ? unlisted->last : std::max(again_until_, unlisted->last);
    for_gaps(unread_, range, [this](OffsetRange gap) { again_.add(gap); });
    unread_.add(range);
  }
  return true;
}

void ExpiryIndex::was_read(OffsetRange range) {
  unread_.remove(range);
  again_.remove(range);
}

/// Reads noted messages, in the order of their offsets.
bool ExpiryIndex::read_noted(Timestamp wall, SteadyTime now) {
  if (now < read_again_) return false;
  const std::uint64_t work_from = TurnWork::bytes();
  log::ReadPosition place{};
  while (!unread_.empty()) {
    if (TurnWork::bytes() - work_from > noted_work_max) return true;
    const OffsetRange run = *unread_.first_behind(Offset{0});
    place.offset = run.begin;
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
        was_read({Offset{0}, range.end});
        break;
      }
      case log::ReadOutcome::trimmed:
      case log::ReadOutcome::damaged: was_read({Offset{0}, read.next}); break;
      case log::ReadOutcome::end: was_read({Offset{0}, run.end}); break;
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
    if (!again_.empty() && again_until_ < *expiry && again_.contains(at)) continue;
    if (pending.end != at || *expiry != pending_expiry) {
      expect(pending, pending_expiry, wall);
      pending = {at, at};
      pending_expiry = *expiry;
    }
    pending.end = at + 1;
  }
  expect(pending, pending_expiry, wall);
  return true;
}

Timestamp ExpiryIndex::next_due() const {
  const bool has_prefix = ttl_ms_ != 0 && prefix_ < log_.next_offset();
  return has_prefix && prefix_due_ ? std::min(times_.next(), *prefix_due_) : times_.next();
}

SteadyTime ExpiryIndex::next_timer(Timestamp wall, SteadyTime now) const {
  SteadyTime next = next_due() <= wall ? now + tend_interval : never;
  if (!unread_.empty() && !is_pending_) next = std::min(next, std::max(read_again_, now));
  if (ttl_ms_ != 0 && !prefix_due_ && prefix_ < log_.next_offset())
    next = std::min(next, std::max(prefix_again_, now + tend_interval));
  return next;
}

void ExpiryIndex::forget_before(Offset first) {
  const auto forget = [this](OffsetRange gone) {
    TurnWork::add(4 * TurnWork::set_changed);
    expired_.remove(gone);
    fresh_.remove(gone);
    was_read(gone);
  };
  const log::OffsetSet* const carried = carried_over_from(log_);
  if (carried == nullptr) {
    forget({Offset{0}, first});
  } else {
    for_gaps(*carried, {std::min(forgotten_before_, first), first}, forget);
    forget_gone(first);
  }
  forgotten_before_ = first;
}

/// Forgets messages that were carried over when forget_before passed them, and are gone now. Looks at a few
/// runs of them, and continues at the next call.
void ExpiryIndex::forget_gone(Offset first) {
  const log::OffsetSet* const carried = carried_over_from(log_);
  for (int runs = 0; runs < gone_runs_max; ++runs) {
    const auto run = expired_.first_behind(gone_passed_);
    if (!run || first <= run->begin) {
      gone_passed_ = {};
      return;
    }
    TurnWork::add(TurnWork::range_passed);
    const OffsetRange part{run->begin, std::min(run->end, first)};
    for_gaps(*carried, part, [this](OffsetRange gone) { expired_.remove(gone); });
    gone_passed_ = part.end;
  }
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
        was_read(part);
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
