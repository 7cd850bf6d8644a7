/// Compares the states of the broker's groups with the model's.
#include <algorithm>

#include "model/world.hpp"

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;

namespace {
constexpr std::uint64_t all_messages_every = 64;  // checks
// The broker works in bounded pieces, so more turns may have to follow before nothing happens.
constexpr int settled_again_max = 20;

void demand_same(const std::string& name, const char* what, std::uint64_t real, std::uint64_t expected) {
  demand(real == expected,
         [&] { return name + std::to_string(real) + " " + what + ", not " + std::to_string(expected); });
}

void demand_same_events(const std::string& name, const GroupCounters& real, const GroupCounters& expected) {
  demand_same(name, "were acknowledged", real.acknowledged, expected.acknowledged);
  demand_same(name, "were released", real.released, expected.released);
  demand_same(name, "failed", real.failed, expected.failed);
  demand_same(name, "timed out", real.timed_out, expected.timed_out);
  demand_same(name, "were lost with a session", real.lost_with_session, expected.lost_with_session);
  demand_same(name, "were revoked", real.revoked, expected.revoked);
}
}  // namespace

void World::check() {
  const log::CarriedRecords* const carried = broker_.orders_store().carried();
  if (carried != nullptr && !carried->offsets().empty()) ++tally_["steps with carried messages"];
  if (may_drop()) broker_.plain().topic.groups().give_up_dropped();
  for (auto& [name, group] : groups_) {
    check(*group);
    if (step_ % all_messages_every == 0) check_messages(*group);
    for (int tries = 0; !is_live(*group); ++tries) {
      demand(tries < settled_again_max, [&] { return complaint_; });
      broker_.settle();
      if (is_over_) return;
    }
  }
  check_recurring();
  check_subscribers();
  if (broker_.is_dead()) return;
  const auto stats = broker_.orders().schedule().stats();
  if (stats.messages == schedule_.waiting.size()) ghosts_ = 0;
  demand(stats.messages <= schedule_.waiting.size() + ghosts_ && schedule_.waiting.size() <= stats.messages,
         [&] {
           return std::to_string(stats.messages) + " delayed messages wait, not " +
                  std::to_string(schedule_.waiting.size());
         });
  if (due_since_ms_ < 0 || broker_.ticked_ms() - due_since_ms_ <= 1'000) return;
  demand(!stats.waiting_by.empty(), "a delayed message is due and does not leave");
}

/// Each message that a group is not done with is in one state, and each counter has each event once.
void World::check(ModelGroup& group) {
  const std::string name = "group " + group.name + ": ";
  ConsumerGroup* const found = real(group);
  demand(found != nullptr, [&] { return name + "it is gone"; });
  GroupMessages& messages = found->messages();
  const SteadyTime now = broker_.now();
  std::uint64_t held = 0, parked = 0, waiting = 0, surely_ready = 0, surely_retrying = 0, maybe = 0;
  for (const auto& [offset, message] : group.open) {
    if (message.holder != 0)
      ++held;
    else if (message.dead == Dead::parked)
      ++parked;
    else if (message.dead == Dead::waiting)
      ++waiting;
    else if (message.ready_by <= now)
      ++surely_ready;
    else
      ++(now < message.waits_until ? surely_retrying : maybe);
  }
  const auto same = [&](const char* what, std::uint64_t real_number, std::uint64_t expected) {
    demand_same(name, what, real_number, expected);
  };
  const TopicStore& store = broker_.orders_store();
  const std::uint64_t ready = messages.ready(store.first_offset(), store.next_offset());
  same("is next", found->next().value, group.next);
  same("are in flight", messages.in_flight(), held);
  same("are parked", messages.parked(), parked);
  same("wait for their transfer", messages.dead_waiting(), waiting);
  // The log has dropped some that the group has not come to. It receives those of them that have copies.
  std::uint64_t lost_ahead = 0, copies_ahead = 0;
  for (std::uint64_t at = found->next().value; at < store.first_offset().value; ++at)
    ++(is_dropped(at) ? lost_ahead : copies_ahead);
  const std::uint64_t pending = copies_ahead + ready + messages.in_flight() + messages.retrying() +
                                messages.parked() + messages.dead_waiting();
  if (pending != group.open.size()) note(difference_of(group, *found));
  same("are pending", pending, group.open.size());
  demand(surely_ready <= ready + copies_ahead && ready <= surely_ready + maybe, [&] {
    std::string text =
        name + std::to_string(ready) + " are ready, not " + std::to_string(surely_ready) + "; delayed";
    const log::OffsetSet& delayed = messages.redelivery().waiting().delayed();
    for (auto run = delayed.first_behind(Offset{0}); run; run = delayed.first_behind(run->end))
      text += " [" + std::to_string(run->begin.value) + ", " + std::to_string(run->end.value) + ")";
    return text;
  });
  same("are committed", found->committed().value, group.committed());
  const GroupCounters counters = found->failures().counters();
  demand_same_events(name, counters, group.counters);
  // Expired messages that the group keeps and has not come to yet are dead by computation.
  std::uint64_t ahead = 0;
  if (group.keeps_expired() && messages.expiry().index() != nullptr)
    ahead = messages.expiry().index()->expired().count_in({messages.next(), store.next_offset()});
  const std::uint64_t expired_max = group.counters.expired + group.perhaps_expired;
  const std::uint64_t died_max =
      group.counters.dead + group.perhaps_dead + expired_max - group.counters.expired;
  demand(group.counters.dead <= counters.dead + ahead && counters.dead + ahead <= died_max, [&] {
    return name + std::to_string(counters.dead + ahead) + " died, not " + std::to_string(group.counters.dead);
  });
  demand(group.counters.expired <= counters.expired && counters.expired <= expired_max, [&] {
    return name + std::to_string(counters.expired) + " expired, not " +
           std::to_string(group.counters.expired);
  });
  const std::uint64_t lost = messages.loss().trimmed + messages.loss().damaged + lost_ahead;
  demand(group.lost <= lost && lost <= group.lost + group.perhaps_lost, [&] {
    return name + std::to_string(lost) + " were lost, not " + std::to_string(group.lost) + " to " +
           std::to_string(group.lost + group.perhaps_lost);
  });
}

/// Returns the statements of a save about each message that the group is not done with.
std::map<std::uint64_t, SavedView> World::views_of(ConsumerGroup& group, bool keeps) const {
  std::map<std::uint64_t, SavedView> views;
  GroupMessages& messages = group.messages();
  const WaitingMessages& waiting = messages.redelivery().waiting();
  const auto each = [](const log::OffsetSet& set, auto&& visit) {
    for (auto run = set.first_behind(Offset{0}); run; run = set.first_behind(run->end)) {
      for (std::uint64_t at = run->begin.value; at < run->end.value; ++at) visit(at);
    }
  };
  for (const log::OffsetSet* const set : {&waiting.ready(), &waiting.alone(), &waiting.delayed()})
    each(*set, [&](std::uint64_t at) { views[at] = {false, waiting.counts().of({at}), Dead::no}; });
  if (const DeadMessages* const dead = messages.redelivery().dead()) {
    each(dead->parked(),
         [&](std::uint64_t at) { views[at] = {false, dead->attempts().of({at}), Dead::parked}; });
    each(dead->waiting(),
         [&](std::uint64_t at) { views[at] = {false, dead->attempts().of({at}), Dead::waiting}; });
  }
  for (const auto& member : messages.consumers().members) {
    member->outstanding().for_each([&](OffsetRange range, const Delivery& delivery) {
      for (std::uint64_t at = range.begin.value; at < range.end.value; ++at)
        views[at] = {false, messages.saved_count(delivery), Dead::no};
    });
  }
  for (const RecordSink* const consumer : messages.consumers().plain) {
    for (const Offset at : consumer->unsent())
      views[at.value] = {false, messages.delivery_of_unsent(at).counted(), Dead::no};
  }
  const ExpiryIndex* const index = messages.expiry().index();
  for (std::uint64_t at = messages.next().value; at < log_.size(); ++at) {
    const bool has_expired = index != nullptr && index->expired().contains({at});
    if (has_expired && !keeps) continue;
    views[at] = {.dead = has_expired ? Dead::waiting : Dead::no};
  }
  return views;
}

/// Returns the messages that only the broker's group has, and those that only the model's has.
std::string World::difference_of(const ModelGroup& group, ConsumerGroup& found) const {
  const auto views = views_of(found, group.keeps_expired());
  std::string text = "group " + group.name + ": the model lacks";
  for (const auto& [offset, view] : views)
    if (!group.open.contains(offset)) text += " " + std::to_string(offset);
  text += "; the broker lacks";
  for (const auto& [offset, message] : group.open)
    if (!views.contains(offset)) text += " " + std::to_string(offset);
  return text;
}

void World::check_messages(ModelGroup& group) {
  const auto views = views_of(*real(group), group.keeps_expired());
  for (const auto& [offset, view] : views) {
    if (is_dropped(offset)) continue;
    demand(group.view(offset, log_.size()) == view, [&] {
      return "group " + group.name + ", message " + std::to_string(offset) + " has " +
             std::to_string(view.attempts) + " attempts and state " +
             std::to_string(static_cast<int>(view.dead)) + ", not " +
             std::to_string(group.view(offset, log_.size()).attempts);
    });
  }
  // Carried copies, or the log, have each of them but those whose letters may be on their way.
  TopicStore& store = broker_.orders_store();
  const std::set<std::uint64_t> under_way = under_way_of(group);
  for (const auto& [offset, message] : group.open) {
    if (store.first_offset() <= Offset{offset}) break;
    if (message.holder != 0 || under_way.contains(offset)) continue;
    demand(store.carried() != nullptr && store.carried()->offsets().contains({offset}),
           [&] { return "group " + group.name + ", message " + std::to_string(offset) + " is lost"; });
  }
}

/// From every state with a ready message and a live consumer with credit a hand-out follows.
bool World::is_live(ModelGroup& group) {
  if (group.is_paused || broker_.catalogue().is_paused || broker_.is_dead()) return true;
  if (real(group)->pause_cause() != PauseCause::none) return true;
  const SteadyTime now = broker_.now();
  std::uint64_t last_ready = 0;
  bool any_ready = false, any_alone = false, any_perhaps_alone = false, any_unstarted_silent = false;
  for (const auto& [offset, message] : group.open) {
    if (message.is_unsent) continue;
    if (message.holder != 0) {
      const ModelMember& holder = group.members.at(message.holder);
      any_unstarted_silent |= holder.is_silent && holder.leases && !message.is_started;
      continue;
    }
    if (message.dead != Dead::no || message.may_return) continue;
    any_perhaps_alone |= group.is_alone(message) && message.waits_until <= now;
    if (now < message.ready_by) continue;
    if (group.may_expire(offset, message)) continue;
    (group.is_alone(message) ? any_alone : any_ready) = true;
    last_ready = offset;
  }
  for (const auto& [number, puller] : group.pullers) {
    if ((any_ready || any_alone) && puller.sink->has_room())
      return is_stuck("group " + group.name + ": a plain consumer can take message " +
                      std::to_string(last_ready) + ", and gets none");
  }
  for (const auto& [number, member] : group.members) {
    if (!member.can_take()) continue;
    std::uint64_t held = 0;
    bool has_alone = false;
    for (const auto& [offset, message] : group.open) {
      if (message.holder != number) continue;
      ++held;
      has_alone |= message.is_alone || group.is_alone(message);
    }
    const bool has_any = held != 0;
    has_alone = has_alone && held == 1;
    const bool may_take_alone = member.leases || !has_any;
    if (any_alone && may_take_alone)
      return is_stuck("group " + group.name + ": a consumer can take message " + std::to_string(last_ready) +
                      " alone, and gets none");
    if (!member.leases && (has_alone || (has_any && any_perhaps_alone))) continue;
    if (any_unstarted_silent) return is_stuck("group " + group.name + ": a silent consumer keeps messages");
    if (any_ready)
      return is_stuck("group " + group.name + ": consumer " + std::to_string(number) + " can take message " +
                      std::to_string(last_ready) + ", and gets none");
  }
  return true;
}

bool World::is_stuck(std::string complaint) {
  complaint_ = std::move(complaint);
  return false;
}

}  // namespace lightq::model
