/// The transitions of the model's groups.
#include "model/model_group.hpp"

#include <algorithm>
#include <utility>

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;
using Protection = GroupMessage::Protection;

namespace {
constexpr std::int64_t rounding_ms_min = 8;
constexpr std::int64_t rounding_part = 64;
constexpr std::size_t overdue_many = 50;
}  // namespace

ModelMember* ModelGroup::member_of(int number) {
  const auto found = members.find(number);
  return found == members.end() ? nullptr : &found->second;
}

// --- Saved views ---

SavedView ModelGroup::view(std::uint64_t offset, std::uint64_t log_end) const {
  const auto found = open.find(offset);
  if (found == open.end()) return {.is_done = offset < log_end};
  const GroupMessage& message = found->second;
  SavedView view{false, message.attempts, message.dead};
  if (message.holder == 0) return view;
  if (message.is_unsent) return view;
  if (message.is_started) ++view.attempts;
  if (max() != 0) view.attempts = std::min(view.attempts, max() - 1);  // a restart alone kills no message
  return view;
}

void ModelGroup::note(std::uint64_t offset) {
  const auto found = open.find(offset);
  const GroupMessage message = found == open.end() ? GroupMessage() : found->second;
  changes_.push_back(
      {parts_.ticked_ms(), offset, view(offset, offset + 1), message.ready_by, message.protection});
}

GroupMessage& ModelGroup::change(std::uint64_t offset) {
  note(offset);
  return open.at(offset);
}

void ModelGroup::forget_changes(std::int64_t before_ms) {
  while (!changes_.empty() && changes_.front().ms < before_ms) changes_.pop_front();
}

bool ModelGroup::is_possible(std::uint64_t offset, const SavedView& found, std::uint64_t log_end) const {
  if (view(offset, log_end) == found || may_revive(offset, found)) return true;
  return std::ranges::any_of(changes_, [&](const Change& each) {
    if (each.offset != offset) return false;
    SavedView before = each.before;
    if (before == found) return true;
    if (before.dead == Dead::waiting && settings.dead_letter_topic.empty()) before.dead = Dead::parked;
    // A lowered limit may have come between: a restart kills no message.
    if (max() != 0 && before.dead == Dead::no) before.attempts = std::min(before.attempts, max() - 1);
    return before == found;
  });
}

void ModelGroup::restore(const std::map<std::uint64_t, SavedView>& views, std::uint64_t cursor,
                         bool has_jumped) {
  const auto now = parts_.now();
  const auto before = std::exchange(open, {});
  for (const auto& [offset, view] : views) {
    if (view.is_done) continue;
    GroupMessage& message = open[offset];
    message.was_dropped = parts_.is_dropped(offset);
    message.attempts = view.attempts;
    message.dead = view.dead;
    if (const auto known = before.find(offset); known != before.end()) {
      const GroupMessage& former = known->second;
      if (former.holder == 0 && former.dead == Dead::no) {
        message.waits_until = has_jumped ? now : former.waits_until;
        message.ready_by = former.ready_by;
      }
      message.is_vague = true;
      message.protection = former.protection;
      message.cause = former.cause;
      message.reason = former.reason;
      message.has_letter = former.has_letter;
    }
  }
  // Changes of the last second may be undone.
  for (const Change& each : changes_) {
    const auto found = open.find(each.offset);
    if (found == open.end()) continue;
    found->second.waits_until = {};
    found->second.is_vague = true;
    found->second.ready_by = std::max(found->second.ready_by, each.ready_by);
    if (found->second.protection != each.protection) found->second.protection = Protection::perhaps;
  }
  // A wall clock that was set moves stored times.
  for (auto& [offset, message] : open) {
    if (has_jumped && now - std::chrono::minutes(1) < message.ready_by)
      message.ready_by = std::max(message.ready_by, now);
    if (message.ready_by < now || (!has_jumped && message.ready_by == now)) continue;
    message.ready_by += milliseconds(rounding_ms_min + 1) + (message.ready_by - now) / rounding_part +
                        std::chrono::hours(has_jumped ? 1 : 0);
  }
  next = cursor;
  std::erase_if(expired_, [&](const auto& each) { return open.contains(each.first); });
  counted_.clear();
  perhaps_counted_.clear();
  perhaps_expired = perhaps_dead = perhaps_lost = 0;
  members.clear();
  pullers.clear();
  counters = {};
  lost = 0;
  changes_.clear();
  obey_limit();
}

// --- Returns ---

/// The message can no longer be read, and nobody has it.
void ModelGroup::lose(std::uint64_t offset) {
  const GroupMessage& message = open.at(offset);
  const bool waits = message.dead != Dead::no || parts_.now() < message.waits_until;
  demand(!waits || message.was_dropped || !parts_.keeps_waiting(),
         [&] { return of(offset) + "it waited, and the log has dropped it"; });
  parts_.count(waits ? "messages lost that waited" : "messages lost that were dropped", 1);
  // If a crash has restored the death that has a letter, the message was finished, and not lost.
  const bool may_be_finished = message.dead == Dead::waiting && message.may_have_letter;
  ++(may_be_finished ? perhaps_lost : lost);
  finish(offset);
}

/// A message that the log has dropped cannot be kept for anybody: it is lost, and not dead.
void ModelGroup::die(std::uint64_t offset, DeathCause cause, const std::string& reason) {
  if (parts_.is_lost(offset)) {
    parts_.count("lost instead of dead", 1);
    perhaps_dead += knows_order_ ? 0 : 1;  // it may have died first, and was lost then
    return lose(offset);
  }
  GroupMessage& message = open.at(offset);
  parts_.count(cause == DeathCause::expired    ? "dead: expired"
               : cause == DeathCause::rejected ? "dead: rejected"
                                               : "dead: attempts",
               1);
  ++counters.dead;
  message.dead = settings.dead_letter_topic.empty() ? Dead::parked : Dead::waiting;
  message.cause = cause;
  message.reason = reason;
  message.is_single = false;
  message.protection = Protection::no;
  message.has_letter = message.may_have_letter = message.is_vague = false;
}

void ModelGroup::set_wait(GroupMessage& message, milliseconds least, milliseconds most) const {
  message.waits_until = parts_.now() + least;
  const std::int64_t rounding = std::max(rounding_ms_min, most.count() / rounding_part);
  message.ready_by = parts_.now() + most + milliseconds(most.count() == 0 ? 0 : rounding);
}

void ModelGroup::come_back(std::uint64_t offset, bool has_failed, std::uint32_t delay_ms) {
  GroupMessage& message = change(offset);
  counted_.erase(offset);
  message.holder = 0;
  message.is_started = message.is_alone = false;
  message.until = message.until_latest = never;
  message.was_dropped = parts_.is_dropped(offset);
  set_wait(message, milliseconds(delay_ms), milliseconds(delay_ms));
  if (has_failed) ++message.attempts;
  if (max() != 0 && message.attempts >= max()) return die(offset, DeathCause::attempts, {});
  if (!has_failed || delay_ms != 0 || settings.backoff_ms.empty()) return;
  const auto step = std::min<std::size_t>(message.attempts, settings.backoff_ms.size());
  const milliseconds wait(settings.backoff_ms[step - 1]);
  set_wait(message, wait - wait / 10 - milliseconds(1), wait + wait / 10 + milliseconds(1));
}

void ModelGroup::take_overdue() {
  const auto now = parts_.now();
  const bool any = std::ranges::any_of(members, [](const auto& each) { return !each.second.leases; });
  for (auto at = open.begin(); any && at != open.end();) {
    const auto& [offset, message] = *at++;
    if (message.holder == 0 || now < message.until) continue;
    ModelMember* const member = member_of(message.holder);
    if (member == nullptr || member->leases) continue;
    ++counters.timed_out;
    parts_.count("timed out without leases", 1);
    if (member->hears_late) member->overdue.insert(offset);
    member->has_many_overdue |= member->overdue.size() > overdue_many;
    come_back(offset, true);
  }
}

void ModelGroup::revoked(const Told& told) {
  ModelMember& member = *member_of(told.client);
  for (const OffsetRange& range : told.ranges) {
    for (std::uint64_t at = range.begin.value; at < range.end.value; ++at) {
      const auto found = open.find(at);
      demand(found != open.end() && found->second.holder == told.client,
             [&] { return of(at) + "revoked from a consumer that does not have it"; });
      const bool timed_out = told.cause == RevokeCause::processing_timeout;
      if (timed_out)
        demand(found->second.is_started && found->second.until <= parts_.now(),
               [&] { return of(at) + "its processing time is not over"; });
      if (told.cause == RevokeCause::silent)
        demand(member.is_silent && !found->second.is_started,
               [&] { return of(at) + "taken from a consumer that is not silent, or has started it"; });
      demand(timed_out || told.cause == RevokeCause::silent, [&] { return of(at) + "another revocation"; });
      demand(found->second.hand_out < told.hand_out, [&] { return of(at) + "a hand-out that is not over"; });
      ++(timed_out ? counters.timed_out : counters.revoked);
      parts_.count(timed_out ? "revoked after the processing time" : "revoked from silent consumers", 1);
      come_back(at, timed_out);
    }
  }
}

// --- Requests ---

template <typename Visit>
void ModelGroup::each_held(const ModelMember& member, OffsetRange range, std::uint32_t hand_out,
                           Visit&& visit) {
  for (auto at = open.lower_bound(range.begin.value); at != open.end() && at->first < range.end.value;) {
    const auto here = at++;
    if (here->second.holder == member.client->number && here->second.hand_out == hand_out)
      visit(here->first, here->second);
  }
}

void ModelGroup::start_work(ModelMember& member, OffsetRange range, std::uint32_t hand_out) {
  each_held(member, range, hand_out, [&](std::uint64_t offset, GroupMessage& message) {
    if (message.is_started) return;
    change(offset).is_started = true;
    set_deadline(message, member.timeout_ms);
  });
  if (hand_out != member.last_hand_out) return;
  member.window = range;
  member.window_hand_out = hand_out;
}

void ModelGroup::extend(ModelMember& member, OffsetRange range, std::uint32_t hand_out, std::uint32_t ms) {
  each_held(member, range, hand_out, [&](std::uint64_t offset, GroupMessage& message) {
    change(offset).is_started = true;
    message.until = parts_.now() + milliseconds(ms);
    message.until_latest = message.until;
  });
}

void ModelGroup::lose_dropped(std::uint64_t first, const std::set<std::uint64_t>& under_way) {
  for (auto at = open.begin(); at != open.end() && at->first < first;) {
    const auto& [offset, message] = *at++;
    if (message.holder != 0 || !parts_.is_dropped(offset) || under_way.contains(offset)) continue;
    if (may_expire(offset, message)) continue;
    lose(offset);
  }
}

void ModelGroup::finish(std::uint64_t offset) {
  note(offset);
  open.erase(offset);
}

void ModelGroup::acknowledge(ModelMember& member, OffsetRange range, std::uint32_t hand_out,
                             const std::set<std::uint64_t>& under_way) {
  each_held(member, range, hand_out, [&](std::uint64_t offset, GroupMessage&) {
    ++counters.acknowledged;
    finish(offset);
  });
  if (member.leases) return;
  std::erase_if(member.overdue, [&](std::uint64_t offset) {
    if (Offset{offset} < range.begin || range.end <= Offset{offset}) return false;
    const auto found = open.find(offset);
    if (found == open.end() || found->second.holder != 0 || under_way.contains(offset)) return true;
    ++counters.acknowledged;
    finish(offset);
    return true;
  });
}

void ModelGroup::reject(ModelMember& member, OffsetRange range, const Rejection& rejection) {
  each_held(member, range, rejection.hand_out, [&](std::uint64_t offset, GroupMessage&) {
    switch (rejection.kind) {
      case RejectKind::release: ++counters.released; return come_back(offset, false, rejection.delay_ms);
      case RejectKind::retry:
        ++counters.failed;
        return exactly([&] { come_back(offset, true, rejection.delay_ms); });
      case RejectKind::dead: break;
    }
    ++counters.failed;
    GroupMessage& message = change(offset);
    message.holder = 0;
    message.is_started = message.is_alone = false;
    message.until = message.until_latest = never;
    ++message.attempts;
    exactly([&] { die(offset, DeathCause::rejected, rejection.reason); });
  });
}

void ModelGroup::leave(int number, MemberEnd end) {
  const ModelMember& member = members.at(number);
  const bool releases = end == MemberEnd::closed && !member.leases;
  std::vector<std::uint64_t> held;
  std::size_t started = 0;
  for (const auto& [offset, message] : open) {
    if (message.holder != number) continue;
    held.push_back(offset);
    started += message.is_started && !releases ? 1 : 0;
  }
  for (const std::uint64_t offset : held) {
    const bool is_lost = open.at(offset).is_started && !releases;
    ++(is_lost ? counters.lost_with_session : counters.released);
    parts_.count(is_lost ? "lost with a session" : "released at the end of a session", 1);
    exactly([&] { come_back(offset, is_lost); });
    const auto left = open.find(offset);
    if (left == open.end()) continue;
    left->second.is_single = is_lost && started > 1 && max() != 0 && left->second.dead == Dead::no;
  }
  members.erase(number);
}

// --- Commands ---

void ModelGroup::set_settings(const protocol::GroupSettings& changed) {
  for (const auto& [offset, message] : open) {
    if (message.holder != 0) note(offset);  // a save states the attempts as the limit allows
  }
  const protocol::GroupSettings before = std::exchange(settings, changed);
  for (auto& [offset, message] : open) message.is_alone = false;
  if (max() != before.max_attempts) obey_limit();
}

/// A lowered limit acts on messages that wait.
void ModelGroup::obey_limit() {
  if (max() == 0) return;
  for (auto at = open.begin(); at != open.end();) {
    const auto& [offset, message] = *at++;
    if (message.holder != 0 || message.dead != Dead::no || message.attempts < max()) continue;
    note(offset);
    die(offset, DeathCause::attempts, {});
  }
}

void ModelGroup::seek(std::uint64_t to, std::uint64_t log_end) {
  const std::uint64_t first = std::min(to, open.empty() ? to : open.begin()->first);
  for (std::uint64_t at = first; at < log_end; ++at) note(at);
  for (const auto& [offset, message] : open) counters.dead -= message.is_computed ? 1 : 0;
  for (std::uint64_t at = to; at < std::min(next, log_end); ++at) perhaps_counted_.insert(at);
  open.clear();
  for (std::uint64_t at = to; at < log_end; ++at) open[at] = {};
  next = to;
  for (auto& [number, member] : members) member.overdue.clear();
  for (auto& [number, puller] : pullers) puller.taken.clear();
}

void ModelGroup::retry_dead(std::uint64_t offset) {
  note(offset);
  counted_.erase(offset);
  open[offset] = {};
  open[offset].protection = Protection::surely;
}

void ModelGroup::give_back(std::uint64_t offset) {
  retry_dead(offset);
  open[offset].may_return = true;
}

void ModelGroup::protect(std::uint64_t offset, Protection protection) {
  GroupMessage& message = change(offset);
  message.protection = std::max(message.protection, protection);
}

void ModelGroup::expire(std::uint64_t offset) {
  const auto found = open.find(offset);
  demand(found == open.end() || found->second.protection != Protection::surely,
         [&] { return of(offset) + "it expired although it was given back, or is lost"; });
  demand(parts_.may_have_expired(offset), [&] { return of(offset) + "it expired early, or is lost"; });
  expired_[offset] = view(offset, offset + 1);
  if (counted_.insert(offset).second)
    ++(perhaps_counted_.contains(offset) ? perhaps_expired : counters.expired);
  parts_.count("expired", 1);
  if (!keeps_expired()) return finish(offset);
  note(offset);
  die(offset, DeathCause::expired, {});
}

void ModelGroup::keep_expired(std::uint64_t offset) {
  note(offset);
  open[offset] = {};
  die(offset, DeathCause::expired, {});
}

void ModelGroup::let_expired_go(std::uint64_t offset) {
  if (open.at(offset).is_computed) --counters.dead;
  finish(offset);
}

void ModelGroup::parked(std::uint64_t offset) {
  parts_.count("parked without a topic", 1);
  change(offset).dead = Dead::parked;
}

}  // namespace lightq::model
