/// Finds delayed messages for a command, and applies it. Layer: delayed.
#include "delayed/delayed_query.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {
constexpr std::size_t examined_max = 8192;  // messages that a piece looks at without their content
constexpr std::size_t read_max = 1024;      // messages that it reads
constexpr std::size_t list_bytes_max = 256 * limits::KiB;
}  // namespace

/// Returns true if the filter means the message, apart from its number.
bool DelayedQuery::means(const WaitingMessage& message) {
  if (filter_.from && message.due_us < filter_.from->us) return false;
  if (filter_.until && filter_.until->us <= message.due_us) return false;
  if (filter_.id.empty()) return true;
  const DelayedBody body = schedule_.body_of(message);
  return body.outcome == DelayedBody::Outcome::found &&
         AttributesView::trusted(body.kinds, body.message.data()).id() == filter_.id;
}

DelayedQuery::Found DelayedQuery::find(DuePosition from, std::size_t most) {
  Found found;
  filter_.numbers.empty() ? find_by_due(found, from, most) : find_by_number(found, from.number, most);
  return found;
}

void DelayedQuery::find_by_due(Found& found, DuePosition from, std::size_t most) {
  if (filter_.from) from = std::max(from, DuePosition{filter_.from->us, 0});
  std::size_t left = filter_.id.empty() ? examined_max : read_max;
  for (auto walk = schedule_.waiting().walk(from); walk.get() != nullptr; walk.next()) {
    const DuePosition position = *walk.get();
    if (filter_.until && filter_.until->us <= position.due_us) return;
    if (found.messages.size() == most || left-- == 0) {
      found.next = position;
      found.more = true;
      return;
    }
    const WaitingMessage message = walk.run().first();
    if (means(message)) found.messages.push_back(message);
  }
}

void DelayedQuery::find_by_number(Found& found, std::uint64_t from, std::size_t most) {
  std::size_t left = filter_.id.empty() ? examined_max : read_max;
  const auto is_full = [&](std::uint64_t number) {
    if (found.messages.size() < most && found.absent.size() < examined_max && left-- != 0) return false;
    found.next = {0, number};
    found.more = true;
    return true;
  };
  for (const NumberRange& range : filter_.numbers) {
    const bool is_alone = range.begin < range.end && range.end - range.begin == 1;
    for (std::uint64_t at = std::max(from, range.begin); at < range.end;) {
      if (is_full(at)) return;
      const auto run = schedule_.waiting().from_number(at);
      if (!run || range.end <= run->number) {
        if (is_alone) found.absent.push_back(at);
        break;
      }
      at = run->number + 1;
      if (means(run->first())) found.messages.push_back(run->first());
    }
  }
}

DelayedList DelayedQuery::list(DuePosition from, std::size_t most) {
  Found found = find(from, most);
  DelayedList list{.next = found.next, .more = found.more};
  std::size_t bytes = 0;
  for (const WaitingMessage& message : found.messages) {
    if (list_bytes_max <= bytes) {
      list.next = filter_.numbers.empty() ? message.position() : DuePosition{0, message.number};
      list.more = true;
      break;
    }
    const DelayedBody body = schedule_.body_of(message);
    DelayedMessage shown{.number = message.number,
                         .due = {message.due_us},
                         .arrived = body.arrived,
                         .bytes = message.bytes,
                         .is_under_way = schedule_.is_under_way(message)};
    if (body.outcome == DelayedBody::Outcome::found) {
      shown.kinds = body.kinds;
      shown.message.assign(body.message.begin(), body.message.end());
    }
    bytes += sizeof shown + shown.message.size();
    list.messages.push_back(std::move(shown));
  }
  return list;
}

Result<void> DelayedQuery::apply(DelayedAction action, const std::vector<std::uint64_t>& numbers,
                                 Timestamp due, Timestamp now) {
  switch (action) {
    case DelayedAction::count: return {};
    case DelayedAction::cancel: return schedule_.cancel(numbers, now);
    case DelayedAction::hurry: return schedule_.set_due(numbers, now, now);
    case DelayedAction::reschedule: return schedule_.set_due(numbers, due, now);
  }
  return {};
}

Result<DelayedPiece> DelayedQuery::act(DelayedAction action, DuePosition from, Timestamp due, Timestamp now) {
  // A past time means now, as at the arrival of a message.
  if (action == DelayedAction::reschedule && due <= now) action = DelayedAction::hurry;
  const Found found = find(from, schedule_record_numbers_max);
  DelayedPiece piece{.next = found.next, .more = found.more};
  std::vector<std::uint64_t> changed;
  const auto note = [&](std::uint64_t number, DelayedOutcome outcome) {
    switch (outcome) {
      case DelayedOutcome::done: ++piece.done; break;
      case DelayedOutcome::too_late: ++piece.too_late; break;
      case DelayedOutcome::unknown: ++piece.unknown; break;
    }
    const auto range = std::ranges::lower_bound(filter_.numbers, number, {}, &NumberRange::begin);
    const bool is_named =
        range != filter_.numbers.end() && range->begin == number && range->end == number + 1;
    if (is_named) piece.answers.push_back({number, outcome});
  };
  const bool changes_due = action == DelayedAction::hurry || action == DelayedAction::reschedule;
  for (const WaitingMessage& message : found.messages) {
    if (changes_due && schedule_.is_under_way(message)) {
      note(message.number, DelayedOutcome::too_late);
      continue;
    }
    // Messages that are due at that time already, perhaps by an earlier piece, need no record.
    const bool is_changed = (action == DelayedAction::reschedule && message.due_us == due.us) ||
                            (action == DelayedAction::hurry && message.due_us <= now.us);
    const bool is_met_again = is_changed && filter_.numbers.empty() && action == DelayedAction::reschedule;
    if (!is_changed) changed.push_back(message.number);
    if (!is_met_again) note(message.number, DelayedOutcome::done);
  }
  for (const std::uint64_t number : found.absent) {
    const bool is_done = action == DelayedAction::cancel && schedule_.was_cancelled(number);
    if (is_done) {
      note(number, DelayedOutcome::done);
    } else {
      note(number, number < schedule_.next_number() ? DelayedOutcome::too_late : DelayedOutcome::unknown);
    }
  }
  std::ranges::sort(piece.answers, {}, &DelayedAnswer::number);
  if (auto applied = apply(action, changed, due, now); !applied) return applied.error();
  return piece;
}

}  // namespace lightq::broker
