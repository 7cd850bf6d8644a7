/// Adds, finds and removes dead messages. Layer: delivery.
#include "delivery/dead/dead_messages.hpp"

#include <limits>
#include <utility>

#include "admission/turn_work.hpp"
#include "delivery/state/set_merge.hpp"

namespace lightq::broker {

namespace {

// A record, its node of the map and the bytes that shared_ptr needs, without the text of a reason.
constexpr std::size_t record_bytes_each = sizeof(DeathRecord) + 96;

log::OffsetSet clipped_dead(log::OffsetSet set, OffsetRange bounds) {
  clip(set, bounds);
  return set;
}

/// Returns the part of `range` up to the next end of a run of `set` or of a gap between its runs.
OffsetRange cut_at_edge(OffsetRange range, const log::OffsetSet& set, bool& inside) {
  const auto run = set.first_behind(range.begin);
  inside = run && run->begin <= range.begin;
  if (run) range.end = std::min(range.end, inside ? run->end : run->begin);
  return range;
}

}  // namespace

void DeadMessages::add(OffsetRange range, const Death& death, DeadState state) {
  if (range.begin >= range.end) return;
  TurnWork::add(TurnWork::set_changed);
  const std::uint64_t messages = distance(range.begin, range.end);
  if (state == DeadState::dead_waiting &&
      outbox_.messages().size() + messages <= log::SavedDead::outbox_max) {
    for (Offset at = range.begin; at < range.end; at = at + 1) outbox_.add(at);
    TurnWork::add(TurnWork::record_passed * messages);
    waiting_.add(range);
  } else {
    parked_.add(range);
  }
  if (death.cause == DeathCause::rejected) rejected_.add(range);
  attempts_.set(range, death.attempts);
  record(range, death);
  first_failures_.remove(range);
}

/// Records as many of the messages as the limit permits.
void DeadMessages::record(OffsetRange range, const Death& death) {
  std::shared_ptr<const DeathRecord> last;
  for (Offset at = range.begin; at < range.end && records_.size() < DeathRecord::records_max; at = at + 1) {
    TurnWork::add(TurnWork::range_passed);
    const Timestamp first = first_failures_.of(at).value_or(death.time);
    if (last == nullptr || last->first_failure != first)
      last = std::make_shared<const DeathRecord>(DeathRecord{first, death.time, death.reason});
    if (records_.emplace(at, last).second) reason_bytes_ += last->reason.size();
  }
}

/// Forgets cause, attempts and record of messages that are not dead any more.
void DeadMessages::forget(OffsetRange range) {
  rejected_.remove(range);
  attempts_.remove(range);
  const auto begin = records_.lower_bound(range.begin);
  auto end = begin;
  for (; end != records_.end() && end->first < range.end; ++end) {
    TurnWork::add(TurnWork::range_passed);
    reason_bytes_ -= end->second->reason.size();
  }
  records_.erase(begin, end);
}

std::optional<Offset> DeadMessages::find(const DeadFilter& filter, Offset from, std::size_t parts_max,
                                         bool changing, std::vector<OffsetRange>& found) const {
  log::OffsetSet under_way;
  if (changing) {
    for (std::size_t i = 0; i < outbox_.under_way(); ++i) {
      const Offset message = outbox_.messages()[i];
      under_way.add({message, message + 1});
    }
  }
  const bool any_state = !filter.state.has_value();
  const log::OffsetSet none;
  const log::OffsetSet& parked = any_state || *filter.state == DeadState::parked ? parked_ : none;
  const log::OffsetSet& waiting = any_state || *filter.state == DeadState::dead_waiting ? waiting_ : none;
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
    bool is_rejected = false;
    bool is_under_way = false;
    part = cut_at_edge(part, rejected_, is_rejected);
    part = cut_at_edge(part, under_way, is_under_way);
    from = part.end;
    const DeathCause cause = is_rejected ? DeathCause::rejected : DeathCause::attempts;
    if (is_under_way || (filter.cause && *filter.cause != cause)) continue;
    found.push_back(part);
  }
  return from;
}

void DeadMessages::remove(std::span<const OffsetRange> found) {
  bool any_waited = false;
  for (const OffsetRange& range : found) {
    TurnWork::add(3 * TurnWork::set_changed);
    parked_.remove(range);
    waiting_.remove(range, [&](OffsetRange) { any_waited = true; });
    forget(range);
  }
  if (!any_waited) return;
  TurnWork::add(TurnWork::record_passed * outbox_.messages().size());
  outbox_.remove_waiting([&](Offset message) { return !waiting_.contains(message); });
}

void DeadMessages::done() {
  const Offset message = outbox_.done();
  const OffsetRange range{message, message + 1};
  waiting_.remove(range);
  forget(range);
}

void DeadMessages::give_up() {
  const Offset message = outbox_.give_up();
  const OffsetRange range{message, message + 1};
  waiting_.remove(range);
  parked_.add(range);
}

void DeadMessages::park_all() {
  TurnWork::add(waiting_.bytes());
  add_all(parked_, waiting_);
  waiting_.clear();
  outbox_.clear();
}

std::uint64_t DeadMessages::give_up_before(Offset first) {
  first_failures_.remove({Offset{0}, first});
  if (empty() || first <= this->first()) return 0;
  const std::uint64_t before = parked_.size() + waiting_.size();
  const OffsetRange gone{Offset{0}, first};
  const bool any_waited = !waiting_.empty() && waiting_.first() < first;
  parked_.remove(gone);
  if (!any_waited) {
    forget(gone);
    return before - parked_.size() - waiting_.size();
  }
  waiting_.remove(gone);
  outbox_.remove_waiting([&](Offset message) { return message < first; });
  log::OffsetSet kept;
  for (std::size_t i = 0; i < outbox_.under_way(); ++i) {
    const Offset message = outbox_.messages()[i];
    if (message < first) kept.add({message, message + 1});
  }
  kept.for_each([&](OffsetRange range) { waiting_.add(range); });
  Offset from{0};
  kept.for_each([&](OffsetRange range) {
    forget({from, range.begin});
    from = range.end;
  });
  forget({from, first});
  return before - parked_.size() - waiting_.size();
}

void DeadMessages::clear() {
  parked_.clear();
  waiting_.clear();
  rejected_.clear();
  attempts_.clear();
  records_.clear();
  reason_bytes_ = 0;
  outbox_.clear();
  first_failures_.clear();
}

void DeadMessages::restore(const log::SavedDead& saved, const DeliveryCounts& attempts) {
  clear();
  parked_ = saved.parked;
  rejected_ = saved.rejected;
  for (const Offset message : saved.outbox) waiting_.add({message, message + 1});
  outbox_.restore(saved.incarnation, saved.first_number, static_cast<std::size_t>(saved.under_way),
                  saved.outbox);
  for (const log::SavedDeath& each : saved.records) {
    records_.emplace_hint(
        records_.end(), each.offset,
        std::make_shared<const DeathRecord>(DeathRecord{each.first_failure, each.last_failure, each.reason}));
    reason_bytes_ += each.reason.size();
  }
  for (const log::OffsetSet* const dead : {&parked_, &waiting_}) {
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
  saved.parked = clipped_dead(parked_, bounds);
  saved.rejected = clipped_dead(rejected_, bounds);
  saved.outbox.assign(outbox_.messages().begin(), outbox_.messages().end());
  saved.under_way = outbox_.under_way();
  saved.first_number = outbox_.first_number();
  saved.incarnation = outbox_.incarnation();
  for (const auto& [offset, record] : records_)
    saved.records.push_back({offset, record->first_failure, record->last_failure, record->reason});
  for (const auto& [time, messages] : first_failures_.sets()) {
    log::OffsetSet part = clipped_dead(messages, bounds);
    part = without(part, without(part, living));
    if (!part.empty()) saved.first_failures.emplace_back(time, std::move(part));
  }
  return saved;
}

DeadMessage DeadMessages::at(Offset offset) const {
  DeadMessage message;
  message.offset = offset;
  message.state = waiting_.contains(offset) ? DeadState::dead_waiting : DeadState::parked;
  message.cause = rejected_.contains(offset) ? DeathCause::rejected : DeathCause::attempts;
  message.attempts = attempts_.of(offset);
  const auto record = records_.find(offset);
  if (record != records_.end()) message.record = *record->second;
  return message;
}

std::size_t DeadMessages::bytes() const {
  return parked_.bytes() + waiting_.bytes() + rejected_.bytes() + attempts_.bytes() +
         records_.size() * record_bytes_each + reason_bytes_ + outbox_.messages().size() * sizeof(Offset) +
         first_failures_.bytes();
}

}  // namespace lightq::broker
