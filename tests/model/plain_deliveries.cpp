/// The model follows deliveries to plain consumers and to subscribers.
#include <algorithm>
#include <set>

#include "model/world.hpp"

namespace lightq::model {

using namespace broker;

namespace {
constexpr int settled_for_subscribers_max = 20;
}  // namespace

// --- Plain consumers of a group ---

/// A message is done when a plain consumer takes it. It is requeued if it was not sent.
void ModelGroup::pulled(const Told& told) {
  const std::uint64_t at = told.ranges.front().begin.value;
  demand(!is_paused, [&] { return of(at) + "a plain consumer gets it in a pause"; });
  const auto known = open.find(at);
  Told delivery = told;
  delivery.delivery = known == open.end() ? 1 : known->second.attempts + 1;
  delivery.numbers = {parts_.number_at(at)};
  demand(Content{delivery.numbers.front()}.payload() == told.text,
         [&] { return of(at) + "it has another payload"; });
  check_place(told.ranges.front(), delivery.delivery);
  check_delivered(delivery, at, false);
  parts_.count("deliveries to plain consumers", 1);
  GroupMessage& message = change(at);
  message.may_return = message.is_single = message.is_alone = false;
  message.holder = told.client;
  message.hand_out = 0;
  message.is_started = message.is_unsent = true;
  message.until = message.until_latest = never;
  ++counters.acknowledged;
  pullers.at(told.client).taken.insert(at);
}

void ModelGroup::settle_pulled() {
  for (auto& [number, puller] : pullers) {
    std::set<std::uint64_t> unsent;
    for (const Offset offset : puller.sink->unsent()) unsent.insert(offset.value);
    std::erase_if(puller.taken, [&](std::uint64_t offset) {
      if (unsent.contains(offset)) return false;
      finish(offset);
      return true;
    });
  }
}

void ModelGroup::puller_left(int number) {
  const std::set<std::uint64_t> taken = pullers.at(number).taken;
  for (const std::uint64_t offset : taken) {
    --counters.acknowledged;
    ++counters.released;
    parts_.count("unsent messages that came back", 1);
    change(offset).is_unsent = false;
    come_back(offset, false);
  }
  pullers.erase(number);
}

// --- Subscribers ---

void World::subscriber_got(std::uint64_t endpoint, const Told& told) {
  ModelSubscriber& subscriber = subscribers_.at(endpoint);
  const std::uint64_t at = told.ranges.front().begin.value;
  const std::string name =
      "subscriber " + std::to_string(endpoint) + ", message " + std::to_string(at) + ": ";
  demand(!broker_.catalogue().is_paused, [&] { return name + "it gets it in a pause"; });
  demand(subscriber.next <= at, [&] { return name + "it gets it again"; });
  demand(!has_expired(at), [&] { return name + "it gets it although it has expired"; });
  demand(Content{log_.at(at)}.payload() == told.text, [&] { return name + "it has another payload"; });
  subscriber_skips(endpoint, at);
  subscriber.next = at + 1;
  ++tally_["deliveries to subscribers"];
}

/// Only messages that the log has dropped, or that have expired, are skipped.
void World::subscriber_skips(std::uint64_t endpoint, std::uint64_t to) {
  ModelSubscriber& subscriber = subscribers_.at(endpoint);
  for (; subscriber.next < to; ++subscriber.next, ++subscriber.skipped) {
    const bool is_dropped = Offset{subscriber.next} < broker_.orders_store().first_offset();
    demand(is_dropped || may_have_expired(subscriber.next), [&] {
      return "subscriber " + std::to_string(endpoint) + ", message " + std::to_string(subscriber.next) +
             ": it is skipped";
    });
    ++tally_[is_dropped ? "messages that subscribers lost" : "expired messages that subscribers skipped"];
  }
}

void World::observe_subscribers() {
  for (auto& [endpoint, subscriber] : subscribers_) {
    const Subscriber& found = broker_.plain().at(endpoint);
    const std::string name = "subscriber " + std::to_string(endpoint) + ": ";
    demand(subscriber.next <= found.next().value, [&] { return name + "it went back"; });
    subscriber_skips(endpoint, found.next().value);
    demand(found.committed().value == subscriber.committed(), [&] { return name + "another position"; });
    demand(found.lost() + found.expired() == subscriber.skipped, [&] {
      return name + std::to_string(found.lost()) + " lost and " + std::to_string(found.expired()) +
             " expired, not " + std::to_string(subscriber.skipped);
    });
    auto& former = subscriber.former;
    if (former.empty() || former.back().second != subscriber.committed())
      former.push_back({broker_.ticked_ms(), subscriber.committed()});
    if (keeps_changes_) continue;
    // The last position that was left before then may be saved.
    while (former.size() > 1 && former[1].first < oldest_unsaved_ms()) former.pop_front();
    subscriber.is_saved = subscriber.is_saved || subscriber.joined_ms < oldest_unsaved_ms();
  }
}

/// A subscriber whose consumer can take messages has all that there are.
void World::check_subscribers() {
  if (broker_.is_dead() || broker_.catalogue().is_paused) return;
  for (auto& [endpoint, subscriber] : subscribers_) {
    if (subscriber.sink == nullptr) continue;
    for (int tries = 0; subscriber.sink->has_room(); ++tries) {
      std::uint64_t at = subscriber.next;
      while (at < log_.size() && may_have_expired(at)) ++at;
      if (at == log_.size()) break;
      demand(tries < settled_for_subscribers_max, [&] {
        return "subscriber " + std::to_string(endpoint) + " can take message " + std::to_string(at) +
               ", and gets none";
      });
      broker_.settle();
      if (is_over_) return;
    }
  }
}

/// A subscriber continues where it was at most about a second before, and after a clean stop where it was.
void World::recover_subscribers(bool clean) {
  for (auto& [endpoint, subscriber] : subscribers_) {
    const std::uint64_t found = broker_.plain().at(endpoint).next().value;
    const auto end = static_cast<std::uint64_t>(log_.size());
    const std::uint64_t latest = std::min(subscriber.committed(), end);
    std::uint64_t first = latest;
    if (!clean && !subscriber.former.empty()) first = std::min(first, subscriber.former.front().second);
    const bool is_new = !is_durable() || (!clean && !subscriber.is_saved);
    demand((first <= found && found <= latest) || (is_new && found == end), [&] {
      return "subscriber " + std::to_string(endpoint) + " continues at " + std::to_string(found) +
             ", and was at " + std::to_string(latest);
    });
    note("subscriber " + std::to_string(endpoint) + " continues at " + std::to_string(found));
    if (found < latest) ++tally_["subscribers that a crash set back"];
    ++tally_["subscribers found after a start"];
    subscriber.next = found;
    subscriber.skipped = 0;
    subscriber.sink.reset();
    subscriber.former = {{broker_.ticked_ms(), found}};
    subscriber.joined_ms = broker_.ticked_ms();
    subscriber.is_saved = false;
  }
}

}  // namespace lightq::model
