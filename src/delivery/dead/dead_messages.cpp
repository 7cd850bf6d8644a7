/// Adds, finds and removes dead messages. Layer: delivery.
#include "delivery/dead/dead_messages.hpp"

#include <algorithm>

#include <limits>
#include <utility>

#include "admission/turn_work.hpp"
#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {

// A record, its entry and the bytes that shared_ptr needs, without the text of a reason.
constexpr std::size_t record_bytes_each = sizeof(DeathRecord) + 96;

/// Returns the part of `range` up to the next end of a run of `set` or of a gap between its runs.
OffsetRange cut_at_edge(OffsetRange range, const log::OffsetSet& set, bool& inside) {
  const auto run = set.first_behind(range.begin);
  inside = run && run->begin <= range.begin;
  if (run) range.end = std::min(range.end, inside ? run->end : run->begin);
  return range;
}

/// Returns the offsets that are in both sets.
log::OffsetSet both(const log::OffsetSet& one, const log::OffsetSet& other) {
  return without(one, without(one, other));
}

}  // namespace

void DeadMessages::add(OffsetRange range, const Death& death, DeadState state) {
  if (range.begin >= range.end) return;
  TurnWork::add(TurnWork::set_changed);
  const std::uint64_t messages = distance(range.begin, range.end);
  if (state == DeadState::dead_waiting && waiting().size() + messages <= log::SavedDead::outbox_max) {
    outbox_.add(range);
  } else {
    parked_.add(range);
  }
  if (death.cause == DeathCause::rejected) rejected_.add(range);
  if (death.cause == DeathCause::expired) expired_.add(range);
  protected_.remove(range);
  attempts_.set(range, death.attempts);
  record(range, death);
  first_failures_.remove(range);
}

/// Records as many of the messages as the limits permit.
void DeadMessages::record(OffsetRange range, const Death& death) {
  std::shared_ptr<const DeathRecord> last;
  const std::size_t bytes = record_bytes_each + death.reason.size();
  for (Offset at = range.begin; at < range.end && records_.size() < DeathRecord::records_max; at = at + 1) {
    TurnWork::add(TurnWork::range_passed);
    if (record_room_ < bytes) {
      record_room_ = 0;
      return;
    }
    record_room_ -= bytes;
    const Timestamp first = first_failures_.of(at).value_or(death.time);
    if (last == nullptr || last->first_failure != first)
      last = std::make_shared<const DeathRecord>(DeathRecord{first, death.time, death.reason});
    records_.add(at, last);
  }
}

/// Forgets cause, attempts and record of messages that are not dead any more.
void DeadMessages::forget(OffsetRange range) {
  rejected_.remove(range);
  expired_.remove(range);
  attempts_.remove(range);
  TurnWork::add(TurnWork::range_passed * records_.remove(range));
}

/// Adds the messages of `part` that died in the time of the filter. Visits at most `parts_max` records, and
/// deducts them, except one. Returns the offset at which to continue. Requires: parts_max > 0.
Offset DeadMessages::add_died_in(const DeadFilter& filter, OffsetRange part, std::size_t& parts_max,
                                 std::vector<OffsetRange>& found) const {
  Offset next = part.end;
  records_.visit(part, [&](Offset offset, const DeathRecord& record) {
    TurnWork::add(TurnWork::range_passed);
    if (filter.includes(record.last_failure)) {
      if (!found.empty() && found.back().end == offset) {
        found.back().end = offset + 1;
      } else {
        found.push_back({offset, offset + 1});
      }
    }
    if (parts_max == 1) {
      next = offset + 1;
      return false;
    }
    --parts_max;
    return true;
  });
  return next;
}

std::optional<Offset> DeadMessages::find(const DeadFilter& filter, Offset from, std::size_t parts_max,
                                         bool changing, std::vector<OffsetRange>& found) const {
  const log::OffsetSet under_way = changing ? outbox_.under_way_set() : log::OffsetSet();
  const bool any_state = !filter.state.has_value();
  const log::OffsetSet none;
  const log::OffsetSet& parked = any_state || *filter.state == DeadState::parked ? parked_ : none;
  const log::OffsetSet& waiting =
      any_state || *filter.state == DeadState::dead_waiting ? this->waiting() : none;
  auto wanted = filter.ranges.begin();
  for (; parts_max != 0; --parts_max) {
    TurnWork::add(3 * TurnWork::range_passed);
    const auto of_parked = parked.first_behind(from);
    const auto of_waiting = waiting.first_behind(from);
    if (!of_parked && !of_waiting) return std::nullopt;
    const bool is_parked = !of_waiting || (of_parked && of_parked->begin < of_waiting->begin);
    OffsetRange part = is_parked ? *of_parked : *of_waiting;
    part.begin = std::max(part.begin, from);
    if (!filter.ranges.empty()) {
      wanted = std::ranges::upper_bound(wanted, filter.ranges.end(), part.begin, {}, &OffsetRange::end);
      if (wanted == filter.ranges.end()) return std::nullopt;
      part = {std::max(part.begin, wanted->begin), std::min(part.end, wanted->end)};
      if (part.begin >= part.end) {
        from = wanted->begin;
        continue;
      }
    }
    bool is_inside = false;
    bool is_under_way = false;
    part = cut_at_edge(part, rejected_, is_inside);
    part = cut_at_edge(part, expired_, is_inside);
    part = cut_at_edge(part, under_way, is_under_way);
    from = part.end;
    if (is_under_way || (filter.cause && *filter.cause != cause_of(part.begin))) continue;
    if (filter.has_time()) {
      from = add_died_in(filter, part, parts_max, found);
    } else {
      found.push_back(part);
    }
  }
  return from;
}

void DeadMessages::remove(std::span<const OffsetRange> found) {
  for (const OffsetRange& range : found) {
    TurnWork::add(3 * TurnWork::set_changed);
    parked_.remove(range);
    outbox_.remove(range);
    forget(range);
  }
}

void DeadMessages::done() {
  const Offset message = outbox_.done();
  forget({message, message + 1});
}

void DeadMessages::give_up() {
  const Offset message = outbox_.give_up();
  parked_.add({message, message + 1});
}

bool DeadMessages::park_waiting() {
  if (waiting().size() == outbox_.under_way().size()) return false;
  TurnWork::add(waiting().bytes());
  add_all(parked_, outbox_.take_waiting());
  return true;
}

std::uint64_t DeadMessages::give_up_before(Offset first, const log::OffsetSet& carried, Offset from) {
  for_gaps(carried, {from, first}, [&](OffsetRange gone) { first_failures_.remove(gone); });
  if (empty() || first <= this->first()) return 0;
  const std::uint64_t before = parked_.size() + waiting().size();
  const log::OffsetSet under_way = outbox_.under_way_set();
  for_gaps(carried, {from, first}, [&](OffsetRange gone) {
    parked_.remove(gone);
    for_gaps(under_way, gone, [&](OffsetRange part) {
      outbox_.remove(part);
      forget(part);
    });
  });
  return before - parked_.size() - waiting().size();
}

void DeadMessages::clear() {
  parked_.clear();
  rejected_.clear();
  expired_.clear();
  protected_.clear();
  attempts_.clear();
  records_.clear();
  outbox_.clear();
  first_failures_.clear();
}

void DeadMessages::restore(const log::SavedDead& saved, const DeliveryCounts& attempts) {
  clear();
  parked_ = saved.parked;
  rejected_ = saved.rejected;
  outbox_.restore(saved);
  protected_ = without(without(saved.expired, parked_), waiting());
  expired_ = without(saved.expired, protected_);
  for (const log::SavedDeath& each : saved.records) {
    records_.add(each.offset, std::make_shared<const DeathRecord>(
                                  DeathRecord{each.first_failure, each.last_failure, each.reason}));
  }
  for (const log::OffsetSet* const dead : {&std::as_const(parked_), &waiting()}) {
    dead->for_each([&](OffsetRange run) {
      for (OffsetRange part = run; part.begin < run.end; part = {part.end, run.end}) {
        part.end = attempts.end_of_equal(part);
        attempts_.set(part, attempts.of(part.begin));
      }
    });
  }
  first_failures_.restore(saved.first_failures);
}

log::SavedDead DeadMessages::saved(OffsetRange bounds, const log::OffsetSet& living) const {
  log::SavedDead saved;
  saved.parked = clipped(parked_, bounds);
  saved.rejected = clipped(rejected_, bounds);
  saved.expired = clipped(expired_, bounds);
  if (!protected_.empty()) add_all(saved.expired, both(clipped(protected_, bounds), living));
  saved.outbox = clipped(waiting(), bounds);
  saved.under_way.assign(outbox_.under_way().begin(), outbox_.under_way().end());
  saved.first_number = outbox_.first_number();
  saved.incarnation = outbox_.incarnation();
  saved.target = outbox_.target().value;
  constexpr OffsetRange all{{0}, {std::numeric_limits<std::uint64_t>::max()}};
  records_.visit(all, [&](Offset offset, const DeathRecord& record) {
    saved.records.push_back({offset, record.first_failure, record.last_failure, record.reason});
    return true;
  });
  for (const auto& [time, messages] : first_failures_.sets()) {
    log::OffsetSet part = both(clipped(messages, bounds), living);
    if (!part.empty()) saved.first_failures.emplace_back(time, std::move(part));
  }
  return saved;
}

DeathCause DeadMessages::cause_of(Offset message) const {
  if (rejected_.contains(message)) return DeathCause::rejected;
  return expired_.contains(message) ? DeathCause::expired : DeathCause::attempts;
}

DeadMessage DeadMessages::at(Offset offset) const {
  DeadMessage message;
  message.offset = offset;
  message.state = waiting().contains(offset) ? DeadState::dead_waiting : DeadState::parked;
  message.cause = cause_of(offset);
  message.attempts = attempts_.of(offset);
  if (const DeathRecord* const record = records_.find(offset)) message.record = *record;
  return message;
}

std::uint64_t DeadMessages::under_way_in(OffsetRange range, const log::OffsetSet* carried) const {
  const auto counts = [&](Offset message) {
    return range.begin <= message && message < range.end &&
           (carried == nullptr || !carried->contains(message));
  };
  return static_cast<std::uint64_t>(std::ranges::count_if(outbox_.under_way(), counts));
}

std::size_t DeadMessages::set_bytes() const {
  return parked_.bytes() + waiting().bytes() + rejected_.bytes() + expired_.bytes() + protected_.bytes() +
         attempts_.bytes();
}

std::size_t DeadMessages::record_bytes() const {
  return records_.size() * record_bytes_each + records_.reason_bytes() +
         outbox_.under_way().size() * sizeof(Offset) + first_failures_.bytes();
}

}  // namespace lightq::broker
