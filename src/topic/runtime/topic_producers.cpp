/// Opens, resumes, admits and ends a topic's session producers. Layer: topic.
#include "topic/runtime/topic_producers.hpp"

#include <utility>
#include <vector>

#include <lightq/base/random.hpp>

namespace lightq::broker {

/// Returns a random id that no known producer has. Ids must be unique over restarts, too.
std::uint64_t TopicProducers::fresh_id() const {
  std::uint64_t id = 0;
  while (id == 0 || known_.find(id) != nullptr) {
    id = random_number<std::uint64_t>();
  }
  return id;
}

ProducerTable::Opened TopicProducers::open(ProducerIdentity wanted, SessionProducer& producer,
                                           const ProducerTable::Opener& opener) {
  auto opened = known_.open(wanted, fresh_id(), clock_(), opener);
  if (opened.refusal != ClientError::none) return opened;
  const std::uint64_t id = opened.producer.identity.id;
  fence(id);
  this->opened(id, wanted.id == 0 ? id : 0, producer, opener.user == ProducerTable::brokers_own);
  return opened;
}

ProducerTable::Opened TopicProducers::open_request(std::uint64_t id, SessionProducer& producer,
                                                   const ProducerTable::Opener& opener) {
  const bool is_known = known_.find(id) != nullptr;
  auto opened = known_.open({is_known ? id : 0, 0}, id, clock_(), opener);
  if (opened.refusal == ClientError::none) this->opened(id, is_known ? 0 : id, producer, false);
  return opened;
}

void TopicProducers::opened(std::uint64_t id, std::uint64_t fresh_id, SessionProducer& producer,
                            bool is_own) {
  if (attached_.insert_or_assign(&producer, Attached{id, is_own}).second && is_own) ++own_;
  by_id_[id] = &producer;
  waiting_.push_back({&producer, known_.change(), fresh_id});
}

void TopicProducers::fence(std::uint64_t id) {
  const auto former = by_id_.find(id);
  if (former == by_id_.end()) return;
  SessionProducer* const ended = former->second;
  detach(*ended);
  ended->end(ClientError::fenced, "another producer has opened this producer id");
}

void TopicProducers::detach(SessionProducer& producer) {
  const auto found = attached_.find(&producer);
  if (found == attached_.end()) return;
  if (found->second.id != 0) known_.close(found->second.id, clock_());
  forget(producer);
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.producer != &producer) return false;
    // A client that opens producers in vain again and again must not evict the known ones.
    if (waiting.fresh_id != 0) known_.forget(waiting.fresh_id);
    return true;
  });
}

void TopicProducers::forget(SessionProducer& producer) {
  const auto found = attached_.find(&producer);
  by_id_.erase(found->second.id);
  if (found->second.is_own) --own_;
  attached_.erase(found);
  awaiting_.erase(&producer);
  if (const auto turn = turns_.extract(&producer)) held_.erase(turn.mapped());
}

void TopicProducers::admit_settled() {
  std::vector<SessionProducer*> admitted;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (!known_.is_settled(waiting.change)) return false;
    admitted.push_back(waiting.producer);
    return true;
  });
  for (SessionProducer* const producer : admitted) producer->admitted();
}

void TopicProducers::note_held(SessionProducer& producer) {
  if (!turns_.emplace(&producer, next_turn_).second) return;
  held_.emplace(next_turn_++, &producer);
}

/// Resumes producers in the order of their turns. A producer that finds no space gets the last turn, because
/// the first one to resume may take all the space.
bool TopicProducers::resume() {
  for (std::size_t left = held_.size(); left > 0 && !held_.empty(); --left) {
    SessionProducer* const producer = held_.begin()->second;
    held_.erase(held_.begin());
    turns_.erase(producer);
    if (producer->resume()) continue;
    note_held(*producer);
    return false;
  }
  return held_.empty();
}

void TopicProducers::durable_moved() {
  // A copy, because a producer may end during the call and end another one.
  const std::vector<SessionProducer*> told(awaiting_.begin(), awaiting_.end());
  for (SessionProducer* const producer : told) {
    if (awaiting_.erase(producer) == 0) continue;
    if (producer->durable_moved()) awaiting_.insert(producer);
  }
}

void TopicProducers::end_waiting(ClientError code, const std::string& why) {
  std::vector<SessionProducer*> producers;
  for (const Waiting& waiting : waiting_) producers.push_back(waiting.producer);
  end_these(producers, code, why);
}

void TopicProducers::end_needing_durable(ClientError code, const std::string& why) {
  std::vector<SessionProducer*> producers;
  for (const auto& [producer, attached] : attached_) {
    if (producer->needs_durable()) producers.push_back(producer);
  }
  end_these(producers, code, why);
}

void TopicProducers::end_these(const std::vector<SessionProducer*>& producers, ClientError code,
                               const std::string& why) {
  for (SessionProducer* const producer : producers) {
    detach(*producer);
    producer->end(code, why);
  }
}

void TopicProducers::end(ClientError code, const std::string& why) {
  waiting_.clear();
  by_id_.clear();
  awaiting_.clear();
  held_.clear();
  turns_.clear();
  own_ = 0;
  for (const auto& [producer, attached] : std::exchange(attached_, {})) {
    if (attached.id != 0) known_.close(attached.id, clock_());
    producer->end(code, why);
  }
}

}  // namespace lightq::broker
