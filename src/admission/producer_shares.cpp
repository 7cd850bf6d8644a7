/// Counts a topic's known producers by user. Layer: admission.
#include "admission/producer_shares.hpp"

#include <cassert>

namespace lightq::broker {

void ProducerShares::add(std::uint64_t id, std::uint64_t user, bool has_stored) {
  Producer& producer = producers_[id] = {.user = user, .has_stored = has_stored};
  change(user, [](User& owner) { ++owner.known; });
  wait(id, producer);
}

void ProducerShares::remove(std::uint64_t id) {
  const auto found = producers_.find(id);
  if (found == producers_.end()) return;
  const Producer producer = found->second;
  producers_.erase(found);
  const bool is_open = producer.channels > 0;
  if (is_open) {
    --open_;
  } else {
    end_wait(producer);
  }
  change(producer.user, [&](User& owner) {
    --owner.known;
    if (is_open) --owner.open;
  });
}

void ProducerShares::clear() {
  producers_.clear();
  users_.clear();
  users_by_known_.clear();
  empty_.clear();
  open_ = 0;
}

bool ProducerShares::is_open(std::uint64_t id) const {
  const auto found = producers_.find(id);
  return found != producers_.end() && found->second.channels > 0;
}

bool ProducerShares::may_open(std::uint64_t user, std::optional<std::uint64_t> id) const {
  if (id && is_open(*id)) return true;  // it only moves from one channel to another
  const auto owner = users_.find(user);
  const std::size_t own = owner == users_.end() ? 0 : owner->second.open;
  return share_.ask(open_, user, own) == FairShare::Verdict::room;
}

void ProducerShares::open(std::uint64_t id, std::uint64_t user) {
  Producer& producer = producers_.at(id);
  const bool was_open = producer.channels++ > 0;
  if (!was_open) {
    end_wait(producer);
    ++open_;
  }
  change(producer.user, [&](User& owner) {
    --owner.known;
    if (was_open) --owner.open;
  });
  producer.user = user;
  change(user, [](User& owner) {
    ++owner.known;
    ++owner.open;
  });
}

void ProducerShares::close(std::uint64_t id) {
  const auto found = producers_.find(id);
  if (found == producers_.end() || found->second.channels == 0) return;
  Producer& producer = found->second;
  if (--producer.channels > 0) return;
  --open_;
  change(producer.user, [](User& owner) { --owner.open; });
  wait(id, producer);
}

void ProducerShares::stored(std::uint64_t id) {
  Producer& producer = producers_.at(id);
  if (producer.has_stored) return;
  if (producer.channels == 0) end_wait(producer);
  producer.has_stored = true;
  if (producer.channels == 0) wait(id, producer);
}

std::optional<std::uint64_t> ProducerShares::first_to_forget(std::uint64_t user) const {
  if (!empty_.empty()) return empty_.begin()->second;
  if (users_by_known_.empty()) return std::nullopt;
  const auto& [most, who] = *users_by_known_.rbegin();
  const auto asking = users_.find(user);
  const bool is_asking =
      asking != users_.end() && asking->second.known >= most && !asking->second.waiting.empty();
  return (is_asking ? asking->second : users_.at(who)).waiting.begin()->second;
}

/// Applies `change` to the user's counts. Keeps the users sorted, and forgets a user that has no producer
/// left.
template <typename Change>
void ProducerShares::change(std::uint64_t user, Change&& change) {
  User& owner = users_[user];
  if (!owner.waiting.empty()) users_by_known_.erase({owner.known, user});
  change(owner);
  if (!owner.waiting.empty()) users_by_known_.insert({owner.known, user});
  if (owner.known == 0) users_.erase(user);
}

void ProducerShares::wait(std::uint64_t id, Producer& producer) {
  producer.turn = ++last_turn_;
  if (!producer.has_stored) {
    empty_.emplace(producer.turn, id);
  } else {
    change(producer.user, [&](User& owner) { owner.waiting.emplace(producer.turn, id); });
  }
}

void ProducerShares::end_wait(const Producer& producer) {
  if (!producer.has_stored) {
    empty_.erase(producer.turn);
  } else {
    change(producer.user, [&](User& owner) { owner.waiting.erase(producer.turn); });
  }
}

}  // namespace lightq::broker
