/// Counts a topic's known producers by user. Layer: admission.
#include "admission/producer_shares.hpp"

namespace lightq::broker {

void ProducerShares::add(std::uint64_t id, std::uint64_t user, bool has_stored) {
  queue(id, producers_[id] = {.user = user, .has_stored = has_stored});
}

void ProducerShares::remove(std::uint64_t id) {
  const auto found = producers_.extract(id);
  if (found.empty()) return;
  if (found.mapped().channels > 0) open_.give_back(found.mapped().user);
  known_.remove(id);
}

void ProducerShares::clear() {
  while (!producers_.empty()) remove(producers_.begin()->first);
}

bool ProducerShares::is_open(std::uint64_t id) const {
  const auto found = producers_.find(id);
  return found != producers_.end() && found->second.channels > 0;
}

bool ProducerShares::may_open(std::uint64_t user, std::optional<std::uint64_t> id) const {
  if (id && is_open(*id)) return true;  // it only moves from one channel to another
  return open_.ask(user) == FairShare::Verdict::room;
}

void ProducerShares::open(std::uint64_t id, std::uint64_t user) {
  Producer& producer = producers_.at(id);
  if (producer.channels++ > 0) open_.give_back(producer.user);
  producer.user = user;
  open_.add(user);
  queue(id, producer);
}

void ProducerShares::close(std::uint64_t id) {
  const auto found = producers_.find(id);
  if (found == producers_.end() || found->second.channels == 0) return;
  Producer& producer = found->second;
  if (--producer.channels > 0) return;
  open_.give_back(producer.user);
  queue(id, producer);
}

void ProducerShares::stored(std::uint64_t id) {
  Producer& producer = producers_.at(id);
  if (producer.has_stored) return;
  producer.has_stored = true;
  if (producer.channels == 0) queue(id, producer);
}

std::optional<std::uint64_t> ProducerShares::first_to_forget(std::uint64_t user) const {
  const auto oldest = known_.oldest();
  if (!oldest || known_.when(*oldest) == Eviction::first) return oldest;
  std::size_t most = 0;
  const auto found = known_.find([&](std::uint64_t /*user*/, std::size_t known, std::uint64_t /*id*/) {
    most = known;
    return true;
  });
  const auto own = known_.oldest_of(user);
  return own && known_.of(user) >= most ? own : found;
}

/// Makes the producer the newest of its user, and says when it is forgotten.
void ProducerShares::queue(std::uint64_t id, const Producer& producer) {
  const Eviction closed = producer.has_stored ? Eviction::later : Eviction::first;
  known_.put(id, producer.user, producer.channels > 0 ? Eviction::excluded : closed);
}

}  // namespace lightq::broker
