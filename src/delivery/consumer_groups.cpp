/// Opens and removes a topic's groups, dispatches to them, and reports their statistics. Layer: delivery.
#include "delivery/consumer_groups.hpp"

#include <algorithm>
#include <cassert>
#include <system_error>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

#include "admission/fair_share.hpp"
#include "delivery/attempts/failure_stats.hpp"
#include "delivery/offset_search.hpp"
#include "delivery/state/set_merge.hpp"
#include "log/carried/carried_records.hpp"

namespace lightq::broker {

namespace {

// The most work of one dispatch to find and unpack messages, beside delivering them.
constexpr std::uint64_t dispatch_work_max = 1 * limits::MiB;

}  // namespace

// Contains no path, because every user that may read the topic sees the statistics.
std::string blocked_by_disk(const Error* unavailable) {
  if (unavailable == nullptr) return {};
  if (unavailable->system_error == 0) return "disk";
  return "disk: " + std::generic_category().message(unavailable->system_error);
}

const log::OffsetSet* carried_offsets(log::BatchLog& log) {
  const log::CarriedRecords* const carried = log.carried();
  return carried == nullptr || carried->offsets().empty() ? nullptr : &carried->offsets();
}

Offset needed_from(const ConsumerGroup& group, log::BatchLog& log) {
  const Offset committed = group.committed();
  const Offset first = log.first_offset();
  if (first <= committed || carried_offsets(log) == nullptr) return committed;
  const Offset active = active_from(group.messages(), first);
  const auto waiting = waiting_behind(group.messages(), first);
  return waiting ? std::min(active, std::max(waiting->begin, first)) : active;
}

// --- The groups ---

ConsumerGroup* ConsumerGroups::find(std::string_view name) const {
  if (name.empty()) return nullptr;
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Entry& entry) { return entry.group->name() == name; });
  return found == groups_.end() ? nullptr : found->group.get();
}

namespace {
/// Returns the entry of a group. Requires: there is one.
template <typename Entries>
auto& entry_of(Entries& entries, const ConsumerGroup& group) {
  const auto found =
      std::ranges::find_if(entries, [&](const auto& entry) { return entry.group.get() == &group; });
  assert(found != entries.end());
  return *found;
}
}  // namespace

ConsumerGroup& ConsumerGroups::add(std::string name, GroupTerms terms, Offset start, std::uint64_t birth,
                                   std::uint64_t user) {
  const bool was_stored = birth == GroupBirths::restored;
  groups_.push_back(
      {std::make_unique<ConsumerGroup>(std::move(name), terms, start, drops_, limits_, budget_, user),
       {},
       birth,
       false,
       user,
       was_stored ? std::nullopt : std::optional(user)});
  ConsumerGroup& group = *groups_.back().group;
  if (!was_stored) group.standing().roll.moves.begin(start);
  if (group.name() == protocol::default_group) plain_ = &group;
  if (const auto known = settings_.find(group.name()); known != settings_.end())
    group.set_settings(known->second);
  return group;
}

bool ConsumerGroups::set_settings(const std::string& name, const GroupSetup& setup) {
  if (is_default(setup)) {
    settings_.erase(name);
  } else {
    settings_[name] = setup;
  }
  ConsumerGroup* const group = find(name);
  return group != nullptr && group->set_settings(setup);
}

ConsumerGroup& ConsumerGroups::open_plain() {
  if (plain_ == nullptr) {
    const Offset start = direct_ ? log_.next_offset() : log_.first_offset();
    add(std::string(protocol::default_group), {}, start, births_.next());
  }
  for (Entry& entry : groups_) entry.joined_plainly |= entry.group.get() == plain_;
  return *plain_;
}

std::optional<std::uint64_t> ConsumerGroups::owner_of(const std::string& name) const {
  const auto entry =
      std::ranges::find_if(groups_, [&](const Entry& each) { return each.group->name() == name; });
  return entry == groups_.end() ? std::nullopt : entry->owner;
}

void ConsumerGroups::disown(const std::string& name) {
  const auto entry =
      std::ranges::find_if(groups_, [&](const Entry& each) { return each.group->name() == name; });
  if (entry != groups_.end()) entry->owner.reset();
}

namespace {

/// A consumer's own cursor always has space: a new consumer replaces the former one.
bool has_room_in(const ConsumerGroup& group, std::uint64_t user, std::size_t members_max) {
  if (group.terms().mode == GroupMode::own) return true;
  return FairShare(members_max).ask(group.members(), user, group.standing().members_of(user)) ==
         FairShare::Verdict::room;
}

}  // namespace

ConsumerGroups::Opened ConsumerGroups::open(const ConsumeRequest& asked, const LogLives& lives,
                                            std::uint64_t user, std::optional<std::uint64_t> owner) {
  const bool shared = asked.mode == GroupMode::group;
  const std::string name = shared && asked.group.empty() ? std::string(protocol::default_group) : asked.group;
  if (budget_ != nullptr && budget_->members.ask(user) != FairShare::Verdict::room)
    return {ClientError::limit_reached, nullptr, Crowd::members_of_all};
  if (ConsumerGroup* const group = find(name); group != nullptr) {
    if (group->terms().mode != asked.mode) return {ClientError::not_supported};
    if (!has_room_in(*group, user, limits_.members_max))
      return {ClientError::limit_reached, nullptr, Crowd::members_of_group};
    const bool was_stored = entry_of(groups_, *group).birth == GroupBirths::restored;
    if (!shared) {
      // A consumer's own cursor belongs to the user that first opened it since the start.
      const std::uint64_t opener = owner.value_or(user);
      auto& owned_by = entry_of(groups_, *group).owner;
      if (!owned_by) owned_by = opener;
      if (opener != 0 && *owned_by != opener) return {ClientError::unauthorized_access};
      group->set_holds(asked.holds);
    }
    if (was_stored) group->messages().redelivery().claim(user);
    return {ClientError::none, group};
  }
  // This name is reserved for the group of plain pullers.
  if (!shared && name == protocol::default_group) return {ClientError::not_supported};
  if (!name.empty() && !TopicName::parse(name)) return {ClientError::invalid_name};
  StartPosition from = asked.start;
  if (asked.incarnation != 0) {
    const auto same = lives.same_up_to(asked.incarnation);
    if (!same) return {ClientError::incarnation_changed};
    if (from.from == StartPosition::From::offset) from.value = std::min(from.value, same->value);
  }
  const auto own = static_cast<std::size_t>(std::ranges::count(groups_, user, &Entry::user));
  if (FairShare(limits_.groups_max).ask(groups_.size(), user, own) != FairShare::Verdict::room)
    return {ClientError::limit_reached};
  const Result<Offset> start = direct_ ? log_.next_offset() : offset_of(from, log_);
  if (!start) return {ClientError::io_error};
  ConsumerGroup& group = add(name, {asked.mode, shared || asked.holds}, *start, births_.next(), user);
  groups_.back().owner = owner.value_or(user);
  return {ClientError::none, &group};
}

void ConsumerGroups::remove(ConsumerGroup& group) {
  assert(group.consumers() == 0);
  if (&group == plain_) plain_ = nullptr;
  std::erase_if(groups_, [&](const Entry& entry) { return entry.group.get() == &group; });
}

Result<Offset> ConsumerGroups::seek(ConsumerGroup& group, const StartPosition& to) {
  const auto offset = offset_of(to, log_);
  if (!offset) return offset.error();
  group.seek(*offset);
  return group.next();
}

std::uint64_t ConsumerGroups::pass_over(ConsumerGroup& group) {
  const OffsetRange stored{log_.first_offset(), log_.next_offset()};
  const std::uint64_t messages = group.messages().undelivered_in(stored) + group.messages().unacknowledged();
  group.seek(stored.end, RevokeCause::purge);
  return messages;
}

void ConsumerGroups::fetch_ahead_for_input(unsigned step) const {
  if (groups_.empty()) return;
  if (step == 0) return fetch_ahead_up_to(&groups_.front(), &groups_.front().birth);
  if (step == 1) return fetch_ahead_hot(*groups_.front().group);
  groups_.front().group->fetch_ahead_for_input(step - 2);
}

// --- Connected consumers ---

void ConsumerGroups::attach(RecordSink& consumer) {
  ConsumerGroup& group = open_plain();
  if (group.consumers() == 0) drop_unclaimed_direct(group);
  group.attach(consumer);
}

void ConsumerGroups::detach(RecordSink& consumer) {
  if (plain_ == nullptr) return;
  plain_->detach(consumer);
  if (plain_->consumers() == 0) drop_unclaimed_direct(*plain_);
}

GroupMember& ConsumerGroups::attach(ConsumerGroup& group, SessionConsumer& consumer,
                                    const ConsumeRequest& asked, std::uint64_t user) {
  if (group.consumers() == 0) drop_unclaimed_direct(group);
  ++members_;
  return group.attach(consumer, asked, user);
}

void ConsumerGroups::detach(ConsumerGroup& group, GroupMember& member, SteadyTime now) {
  --members_;
  group.detach(member, now);
  if (group.consumers() == 0) drop_unclaimed_direct(group);
}

/// A `direct` topic keeps nothing for consumers that join later. Messages not delivered when the last
/// consumer left are dropped.
void ConsumerGroups::drop_unclaimed_direct(ConsumerGroup& group) {
  if (!direct_) return;
  const Offset from = std::max(group.committed(), log_.first_offset());
  if (group.terms().holds) drops_.count += distance(from, log_.next_offset());
  group.seek(log_.next_offset());
}

// --- The log ---

const ConsumerGroup* ConsumerGroups::slowest_holder() const {
  const ConsumerGroup* slowest = nullptr;
  Offset committed;
  for (const Entry& entry : groups_) {
    if (!is_holder(*entry.group, direct_)) continue;
    const Offset here = needed_from(*entry.group, log_);
    if (slowest != nullptr && committed <= here) continue;
    slowest = entry.group.get();
    committed = here;
  }
  return slowest;
}

std::optional<Offset> ConsumerGroups::passed() const {
  bool joined = direct_;
  Offset passed = log_.next_offset();
  for (const Entry& entry : groups_) {
    joined |= entry.group->terms().mode == GroupMode::group;
    if (!direct_ || entry.group->consumers() > 0) passed = std::min(passed, needed_from(*entry.group, log_));
  }
  if (!joined) return std::nullopt;
  return passed;
}

namespace {

/// Returns how many messages of `range`, which the log has dropped, a group has not come to and has lost.
std::uint64_t lost_ahead(GroupMessages& messages, OffsetRange range, const log::OffsetSet* carried) {
  range.begin = std::max(range.begin, messages.next());
  return messages.expiry().dropped(range, carried).lost;
}

/// Returns how many messages of `range`, which the log has dropped, wait in a group or are dead there, and
/// are lost: all but those that were carried over, and those that the dead-letter topic may have.
std::uint64_t lost_waiting(const GroupMessages& messages, OffsetRange range, const log::OffsetSet* carried) {
  const RedeliveryQueue& queue = messages.redelivery();
  std::uint64_t lost = queue.messages_in(range);
  if (lost == 0) return 0;
  for (auto run = carried == nullptr ? std::nullopt : carried->first_behind(range.begin);
       run && run->begin < range.end; run = carried->first_behind(run->end))
    lost -= queue.messages_in({std::max(run->begin, range.begin), std::min(run->end, range.end)});
  return queue.dead() == nullptr ? lost : lost - queue.dead()->under_way_in(range, carried);
}

}  // namespace

/// Messages that several groups lost count once: the group that lost most determines the number.
bool ConsumerGroups::count_dropped(OffsetRange range) {
  bool held = false;
  std::uint64_t most = 0;
  const log::OffsetSet* const carried = carried_offsets(log_);
  for (const Entry& entry : groups_) {
    if (!is_holder(*entry.group, direct_)) continue;
    held = true;
    GroupMessages& messages = entry.group->messages();
    most = std::max(most, lost_ahead(messages, range, carried) + lost_waiting(messages, range, carried));
  }
  drops_.count += most;
  if (range.begin < range.end) drops_.before = range.end;
  return held;
}

void ConsumerGroups::give_up_dropped(bool all) {
  const Offset first = log_.first_offset();
  const log::OffsetSet* const carried = carried_offsets(log_);
  for (Entry& entry : groups_) entry.group->messages().redelivery().give_up_before(first, carried, all);
}

ConsumerGroups::DispatchResult ConsumerGroups::dispatch(const DeliveryContext& context, DamageCount& damage) {
  DispatchResult result;
  give_up_dropped(false);
  const std::uint64_t work_from = TurnWork::bytes();
  const std::size_t first = first_to_dispatch_ < groups_.size() ? first_to_dispatch_ : 0;
  first_to_dispatch_ = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::size_t at = first + i < groups_.size() ? first + i : first + i - groups_.size();
    if (TurnWork::bytes() - work_from > dispatch_work_max) {
      first_to_dispatch_ = at;  // the next dispatch begins with it
      result.more = true;
      break;
    }
    dispatch_group(groups_[at], context, damage, result);
  }
  return result;
}

void ConsumerGroups::dispatch_group(Entry& entry, const DeliveryContext& context, DamageCount& damage,
                                    DispatchResult& result) {
  ConsumerGroup& group = *entry.group;
  if (paused_) group.tend(context);
  const TurnResult dispatched = paused_ ? TurnResult{} : group.dispatch(log_, context);
  damage.note(group.messages().take_damage());
  result.deliveries += dispatched.deliveries();
  result.bytes += dispatched.bytes;
  result.more |= dispatched.more;
  result.held_back += dispatched.held_back ? 1 : 0;
  result.dead_waiting |= group.messages().dead_waiting() != 0;
  if (&group == plain_) {
    result.to_plain_group += dispatched.messages;
  } else if (dispatched.messages > 0) {
    result.furthest_of_others = std::max(result.furthest_of_others, group.next());
  }
  // Messages that were sent or acknowledged since the last dispatch free space too, even if nothing new was
  // delivered.
  const Offset committed = group.committed();
  result.progress |= dispatched.deliveries() > 0 || committed != entry.committed_known;
  entry.committed_known = committed;
}

SteadyTime ConsumerGroups::next_timer() const {
  SteadyTime next = never;
  for (const Entry& entry : groups_) next = std::min(next, entry.group->next_timer());
  return next;
}

const Error* ConsumerGroups::unavailable() const {
  for (const Entry& entry : groups_) {
    if (const Error* const why = entry.group->unavailable()) return why;
  }
  return nullptr;
}

Offset ConsumerGroups::furthest_of_others() const {
  Offset furthest;
  for (const Entry& entry : groups_) {
    if (entry.group.get() != plain_) furthest = std::max(furthest, entry.group->next());
  }
  return furthest;
}

// --- The disk ---

std::vector<ConsumerGroup*> ConsumerGroups::list(Listed which) const {
  std::vector<ConsumerGroup*> list;
  for (const Entry& entry : groups_) {
    if (which == Listed::all || !entry.group->name().empty()) list.push_back(entry.group.get());
  }
  return list;
}

bool ConsumerGroups::is_saved(const ConsumerGroup& group) const {
  return group.name().empty() || births_.is_saved(entry_of(groups_, group).birth);
}

bool ConsumerGroups::is_provisional(const ConsumerGroup& group) const {
  return !is_saved(group) && !entry_of(groups_, group).joined_plainly;
}

// --- Statistics ---

namespace {

/// Returns how many messages the group has lost, those included that it has not tried to read yet.
std::uint64_t lost_of(ConsumerGroup& group, log::BatchLog& log) {
  GroupMessages& messages = group.messages();
  const Offset first = log.first_offset();
  const log::OffsetSet* const carried = carried_offsets(log);
  const std::uint64_t lost = messages.loss().trimmed + lost_ahead(messages, {Offset{0}, first}, carried);
  // With copies, the queue has only messages that can be read, after ConsumerGroups::give_up_dropped.
  return carried != nullptr ? lost : lost + lost_waiting(messages, {Offset{0}, first}, nullptr);
}

/// Returns how many consumers could take a message now.
std::uint64_t free_consumers_of(const GroupMessages::Consumers& consumers) {
  const auto is_free = [](const RecordSink* sink) { return !sink->first_unsent(); };
  return consumers.standing.turns.waiting() +
         static_cast<std::uint64_t>(std::ranges::count_if(consumers.plain, is_free));
}

/// Returns how many messages are finished behind the committed offset.
std::uint64_t finished_behind_committed(const ConsumerGroup& group, Offset committed) {
  const GroupMessages& messages = group.messages();
  const std::uint64_t left = messages.in_flight() + messages.retrying() + messages.parked() +
                             messages.dead_waiting() + messages.redelivery().ready_messages();
  const std::uint64_t behind = committed < group.next() ? distance(committed, group.next()) : 0;
  return behind - std::min(behind, left);
}

protocol::GroupStats stats_of(ConsumerGroup& group, log::BatchLog& log, const ClockReading& clocks) {
  const Timestamp now = clocks.wall;
  const GroupMessages& messages = group.messages();
  const Offset first = log.first_offset();
  const Offset committed = group.committed();
  protocol::GroupStats stats;
  stats.group = group.name();
  stats.mode = group.terms().mode == GroupMode::own ? "own" : "group";
  stats.next_offset = group.next().value;
  stats.committed_offset = committed.value;
  stats.ready = messages.ready(first, log.next_offset());
  stats.in_flight = messages.in_flight();
  stats.retrying = messages.retrying();
  stats.pending =
      stats.ready + stats.in_flight + stats.retrying + messages.parked() + messages.dead_waiting();
  stats.lag = stats.ready + stats.retrying;
  stats.lost = lost_of(group, log);
  stats.consumers = group.consumers();
  stats.free_consumers = free_consumers_of(messages.consumers());
  stats.unacknowledged = messages.unacknowledged();
  stats.redelivered = group.redelivered();
  stats.paused = group.is_paused();
  stats.blocked_by = blocked_by_disk(group.unavailable());
  const auto oldest = append_time_at(committed, log);
  if (oldest && *oldest < now) stats.oldest_ms = static_cast<std::uint64_t>(now.us - oldest->us) / 1000;
  stats.ack_holes = finished_behind_committed(group, committed);
  const SteadyTime due = messages.redelivery().next_due();
  if (due != never && clocks.steady != SteadyTime{})
    stats.next_due_ms = static_cast<std::uint64_t>(clocks.wall_time_of(due).us / 1000);
  return stats;
}

}  // namespace

namespace {

/// Returns the word for the reason why a group itself delivers nothing; empty: it does deliver.
const char* word_of(PauseCause cause) {
  switch (cause) {
    case PauseCause::none: break;
    case PauseCause::command: return "command";
    case PauseCause::failing: return "failing";
    case PauseCause::dead_letters: return "dead_letters";
  }
  return "";
}

/// Returns the statistics of the group's first `most` members, in the order in which they joined.
std::vector<protocol::MemberStats> members_of(const ConsumerGroup& group, const ClockReading& clocks,
                                              std::uint64_t most) {
  std::vector<protocol::MemberStats> stats;
  for (const auto& member : group.messages().consumers().members) {
    if (stats.size() >= most) break;
    stats.push_back(stats_of(*member, clocks));
  }
  return stats;
}

}  // namespace

std::vector<protocol::GroupStats> ConsumerGroups::stats(const ClockReading& clocks,
                                                        std::uint64_t members_max) const {
  std::vector<protocol::GroupStats> stats;
  const bool has_members = members_max != 0;
  const auto add = [&](ConsumerGroup& group) {
    protocol::GroupStats& added = stats.emplace_back(stats_of(group, log_, clocks));
    added.parked = group.messages().parked();
    added.dead_waiting = group.messages().dead_waiting();
    added.paused_by = word_of(group.pause_cause());
    const GroupFailures& failures = group.failures();
    add_failures(added, failures.counters(), failures.recent(clocks.wall), failures.settings());
    if (added.dead_waiting != 0) added.dead_waiting_by = failures.transfer_trouble();
    if (!has_members) return;
    added.members = members_of(group, clocks, members_max);
    members_max -= added.members->size();
  };
  if (plain_ != nullptr) add(*plain_);
  for (const Entry& entry : groups_) {
    if (entry.group.get() != plain_) add(*entry.group);
  }
  return stats;
}

}  // namespace lightq::broker
