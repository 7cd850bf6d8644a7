/// Admits batches and opens producers. Layer: delivery.
#include "delivery/producers/producer_table.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace lightq::broker {

namespace {

/// Compares in a time that does not depend on where the secrets differ.
bool same(const ProducerSecret& a, const ProducerSecret& b) {
  unsigned differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differences |= std::to_integer<unsigned>(a.at(i) ^ b.at(i));
  return differences == 0;
}

bool is_own(const KnownProducer& producer) {
  return producer.owner == ProducerTable::brokers_own;
}

/// Returns true if an own producer is needed for a short time only.
bool is_of_run(const KnownProducer& producer) {
  return producer.expected == 0 || run_sequences_begin <= producer.expected;
}

bool may_open(const KnownProducer& producer, const ProducerTable::Opener& opener) {
  if (producer.owner && *producer.owner != opener.user) return false;
  return !producer.secret || (opener.shown && same(*producer.secret, *opener.shown));
}

/// A ticket identifies a user. Only a secret distinguishes clients without a user.
void own(KnownProducer& producer, std::uint64_t user, const std::optional<ProducerSecret>& secret) {
  producer.owner = user;
  if (user == FairShare::anonymous && !producer.secret) producer.secret = secret;
}

}  // namespace

ProducerTable::Opened ProducerTable::open(ProducerIdentity wanted, std::uint64_t fresh_id, Timestamp now,
                                          const Opener& opener) {
  const std::uint64_t user = opener.user;
  expire(now);
  if (user == brokers_own) return open_own(wanted, opener.has_place);
  if (wanted.id == 0) {
    assert(fresh_id != 0 && find(fresh_id) == nullptr);
    if (!shares_.may_open(user, {}) || !add({{fresh_id, 0}, 0, time_}, user))
      return {ClientError::limit_reached, {}};
    shares_.open(fresh_id, user);
    own(order_.back(), user, opener.fresh);
    return {ClientError::none, order_.back()};
  }
  const auto found = by_id_.find(wanted.id);
  if (found == by_id_.end() || !may_open(*found->second, opener)) return {ClientError::unknown_producer, {}};
  const auto producer = found->second;
  if (is_later_epoch(producer->identity.epoch, wanted.epoch)) return {ClientError::fenced, {}};
  if (!shares_.may_open(user, wanted.id)) return {ClientError::limit_reached, {}};
  shares_.open(wanted.id, user);
  producer->identity.epoch = wanted.epoch;
  own(*producer, user, opener.shown ? opener.shown : opener.fresh);
  touch(producer);
  return {ClientError::none, *producer};
}

ProducerTable::Opened ProducerTable::open_own(ProducerIdentity wanted, bool has_place) {
  assert(wanted.id != 0);
  const auto found = by_id_.find(wanted.id);
  if (found != by_id_.end() && !is_own(*found->second)) return {ClientError::unknown_producer, {}};
  if (found != by_id_.end()) {
    touch(found->second);
  } else {
    if (!make_place_for_own(places_of_own() + (has_place ? 1 : 0))) return {ClientError::limit_reached, {}};
    insert({.identity = wanted, .last_used = time_, .owner = brokers_own}, brokers_own);
  }
  ++own_.at(wanted.id);
  return {ClientError::none, order_.back()};
}

void ProducerTable::close(std::uint64_t id, Timestamp now) {
  advance(now);
  const auto producer = lookup(id);
  if (producer == order_.end()) return;
  touch(producer);
  if (!is_own(*producer)) return shares_.close(id);
  if (std::uint32_t& open = own_.at(id); open > 0) --open;
}

bool ProducerTable::is_open(std::uint64_t id) const {
  const auto own = own_.find(id);
  return own == own_.end() ? shares_.is_open(id) : own->second > 0;
}

Admission ProducerTable::admit(const Sequences& batch) const {
  const KnownProducer* const producer = find(batch.producer.id);
  if (producer == nullptr) return Admission::unknown;
  if (batch.producer.epoch != producer->identity.epoch) return Admission::fenced;
  if (batch.begin == producer->expected) return Admission::store;
  if (is_own(*producer) && producer->expected < batch.begin) return Admission::store;
  const bool all_before = batch.begin < producer->expected && batch.count <= producer->expected - batch.begin;
  return all_before ? Admission::repeat : Admission::out_of_sequence;
}

void ProducerTable::stored(const Sequences& batch, Timestamp now) {
  advance(now);
  found(batch);
}

void ProducerTable::found(const Sequences& batch) {
  const std::uint64_t end = batch.begin + std::min(batch.count, UINT64_MAX - batch.begin);
  const auto known = lookup(batch.producer.id);
  if (known == order_.end()) {
    KnownProducer found{batch.producer, end, time_};
    if (own_sequences_begin <= batch.begin) found.owner = brokers_own;
    if (add(found, 0) && is_of_request(end)) note_request(batch.producer.id);
    return;
  }
  KnownProducer& producer = *known;
  if (producer.expected == 0 && !is_own(producer)) {
    shares_.stored(producer.identity.id);
    if (is_of_request(end)) note_request(producer.identity.id);
  }
  if (is_later_epoch(batch.producer.epoch, producer.identity.epoch))
    producer.identity.epoch = batch.producer.epoch;
  producer.expected = std::max(producer.expected, end);
  touch(known);
}

/// Finds a producer by id. Tries the one that stored last first, because it is the most frequent and needs no
/// hash lookup.
ProducerTable::Order::iterator ProducerTable::lookup(std::uint64_t id) {
  if (!order_.empty() && order_.back().identity.id == id) return std::prev(order_.end());
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? order_.end() : found->second;
}

const KnownProducer* ProducerTable::find(std::uint64_t id) const {
  if (!order_.empty() && order_.back().identity.id == id) return &order_.back();
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &*found->second;
}

void ProducerTable::forget(std::uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  order_.erase(found->second);
  by_id_.erase(found);
  shares_.remove(id);
  own_.erase(id);
}

void ProducerTable::expire(Timestamp now) {
  advance(now);
  for (auto next = order_.begin(); next != order_.end() && next->last_used.us < time_.us - idle_max_us_;) {
    const KnownProducer& idle = *next++;
    if (!is_own(idle) && !is_open(idle.identity.id)) forget(idle.identity.id);
  }
}

std::vector<KnownProducer> ProducerTable::list() const {
  std::vector<KnownProducer> producers;
  producers.reserve(order_.size());
  std::vector<KnownProducer> open;
  for (const KnownProducer& producer : order_) {
    const bool in_use = is_open(producer.identity.id);
    (in_use ? open : producers).push_back(producer);
    if (in_use) open.back().last_used = time_;
  }
  producers.insert(producers.end(), open.begin(), open.end());
  return producers;
}

void ProducerTable::restore(const std::vector<KnownProducer>& producers) {
  order_.clear();
  by_id_.clear();
  shares_.clear();
  own_.clear();
  requests_.clear();
  seen_.reset();
  time_ = {};
  for (const KnownProducer& producer : producers) {
    time_ = order_.empty() ? producer.last_used : std::max(time_, producer.last_used);
    if (find(producer.identity.id) != nullptr) continue;
    KnownProducer restored = producer;
    restored.last_used = time_;
    if (add(restored, 0) && is_of_request(restored.expected)) note_request(restored.identity.id);
  }
  // Caps each idle time just above the limit, even if the file says more.
  const std::int64_t oldest = std::max(time_.us, INT64_MIN + idle_max_us_ + 1) - idle_max_us_ - 1;
  for (KnownProducer& producer : order_) producer.last_used.us = std::max(producer.last_used.us, oldest);
}

void ProducerTable::touch(Order::iterator producer) {
  producer->last_used = time_;
  order_.splice(order_.end(), order_, producer);
}

/// Advances the table's time. At the first call after `restore` all producers stay as idle as they were then.
void ProducerTable::advance(Timestamp now) {
  if (seen_) {
    if (*seen_ < now) time_.us += std::min(now.us - seen_->us, step_us_max);
  } else {
    for (KnownProducer& producer : order_)
      producer.last_used.us = now.us - (time_.us - producer.last_used.us);
    time_ = now;
  }
  seen_ = now;
}

/// Frees a place for a producer of `user` if the table is full. Returns false if none can be freed.
bool ProducerTable::make_place(std::uint64_t user) {
  if (by_id_.size() < producers_max_) return true;
  const auto first = shares_.first_to_forget(user);
  if (first) forget(*first);
  return first.has_value();
}

std::size_t ProducerTable::places_of_own() const {
  constexpr std::size_t share = 8;
  return std::max<std::size_t>(1, producers_max_ / share);
}

/// Frees a place for an own producer: that of another own one if they have `places` already.
bool ProducerTable::make_place_for_own(std::size_t places) {
  if (own_.size() < places) return make_place(brokers_own);
  const auto first = own_to_forget();
  if (first) forget(*first);
  return first.has_value();
}

/// Returns the longest closed own producer of a run, or else of another kind, or nothing if all are open.
std::optional<std::uint64_t> ProducerTable::own_to_forget() const {
  std::optional<std::uint64_t> other;
  for (const KnownProducer& producer : order_) {
    const std::uint64_t id = producer.identity.id;
    if (!is_own(producer) || is_open(id)) continue;
    if (is_of_run(producer)) return id;
    if (!other) other = id;
  }
  return other;
}

/// Adds a producer. Returns false, and does nothing, if no place can be freed.
bool ProducerTable::add(const KnownProducer& producer, std::uint64_t user) {
  // At a start all of them have come from the table, and it had place for one more.
  if (is_own(producer) ? !make_place_for_own(places_of_own() + 1) : !make_place(user)) return false;
  insert(producer, user);
  return true;
}

/// Counts a request's producer, and forgets the oldest one if there are too many.
void ProducerTable::note_request(std::uint64_t id) {
  requests_.push_back(id);
  if (requests_.size() <= std::max<std::size_t>(1, producers_max_ / 2)) return;
  const std::uint64_t oldest = requests_.front();
  requests_.pop_front();
  const KnownProducer* const known = find(oldest);
  if (known != nullptr && is_of_request(known->expected) && !is_open(oldest)) forget(oldest);
}

void ProducerTable::insert(const KnownProducer& producer, std::uint64_t user) {
  order_.push_back(producer);
  by_id_[producer.identity.id] = std::prev(order_.end());
  if (is_own(producer)) {
    own_[producer.identity.id] = 0;
  } else {
    shares_.add(producer.identity.id, user, producer.expected > 0);
  }
}

}  // namespace lightq::broker
