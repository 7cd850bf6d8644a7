/// Layer: endpoint.
#include "broker/endpoint/topic_producers.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <lightq/base/random.hpp>

namespace lightq::broker {

/// An id must be nobody else's, over restarts too.
std::uint64_t TopicProducers::fresh_id() const {
  std::uint64_t id = 0;
  while (id == 0 || known_.find(id) != nullptr) {
    id = random_number<std::uint64_t>();
  }
  return id;
}

ProducerTable::Opened TopicProducers::open(session::ProducerIdentity wanted, SessionProducer& producer,
                                           const ProducerTable::Opener& opener) {
  auto opened = known_.open(wanted, fresh_id(), clock_(), opener);
  if (opened.refusal != session::Code::ok) return opened;
  fence(opened.producer.identity.id);
  attached_.push_back(&producer);
  waiting_.push_back({&producer, known_.change(), wanted.id == 0 ? opened.producer.identity.id : 0});
  return opened;
}

void TopicProducers::fence(std::uint64_t id) {
  const auto former = std::find_if(attached_.begin(), attached_.end(), [&](const SessionProducer* producer) {
    return producer->producer_id() == id;
  });
  if (former == attached_.end()) return;
  SessionProducer* const ended = *former;
  detach(*ended);
  ended->end(session::Code::fenced, "the producer id has been opened again");
}

void TopicProducers::detach(SessionProducer& producer) {
  if (std::erase(attached_, &producer) > 0) known_.close(producer.producer_id(), clock_());
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.producer != &producer) return false;
    // Who tries again and again in vain must not drive out those that are known.
    if (waiting.fresh_id != 0) known_.forget(waiting.fresh_id);
    return true;
  });
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

/// Begins with another one each time: whoever comes first may take all the room there is.
bool TopicProducers::resume() {
  const auto producers = attached_;  // one that goes on may end
  for (std::size_t i = 0; i < producers.size(); ++i) {
    SessionProducer* const producer = producers[(i + resume_turn_) % producers.size()];
    if (std::find(attached_.begin(), attached_.end(), producer) == attached_.end()) continue;
    if (producer->resume()) continue;
    resume_turn_ += i + 1;
    return false;
  }
  return true;
}

void TopicProducers::durable_moved() {
  const auto producers = attached_;
  for (SessionProducer* const producer : producers) {
    if (std::find(attached_.begin(), attached_.end(), producer) != attached_.end()) producer->durable_moved();
  }
}

void TopicProducers::end_waiting(session::Code code, const std::string& why) {
  std::vector<SessionProducer*> producers;
  for (const Waiting& waiting : waiting_) producers.push_back(waiting.producer);
  end_these(producers, code, why);
}

void TopicProducers::end_needing_durable(session::Code code, const std::string& why) {
  std::vector<SessionProducer*> producers;
  std::copy_if(attached_.begin(), attached_.end(), std::back_inserter(producers),
               [](const SessionProducer* producer) { return producer->needs_durable(); });
  end_these(producers, code, why);
}

void TopicProducers::end_these(const std::vector<SessionProducer*>& producers, session::Code code,
                               const std::string& why) {
  for (SessionProducer* const producer : producers) {
    detach(*producer);
    producer->end(code, why);
  }
}

void TopicProducers::end(session::Code code, const std::string& why) {
  waiting_.clear();
  for (SessionProducer* const producer : std::exchange(attached_, {})) {
    known_.close(producer->producer_id(), clock_());
    producer->end(code, why);
  }
}

}  // namespace lightq::broker
