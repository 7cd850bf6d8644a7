/// Takes messages from a topic's producers: admits them and appends batches. Layer: topic.
#include "topic/runtime/topic_publishing.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lightq::broker {

ProducerTable::Opened TopicPublishing::open(ProducerIdentity wanted, SessionProducer& producer,
                                            ProducerTable::Opener opener) {
  opener.user = parts_.owners.owner_for(opener.user);
  const auto opened = parts_.producers.open(wanted, producer, opener);
  parts_.activity.want_dispatch();  // to save and admit a new producer
  return opened;
}

std::optional<Offset> TopicPublishing::stored_by_request(std::uint64_t id) const {
  const KnownProducer* const known = parts_.known.find(id);
  if (known == nullptr || !is_of_request(known->expected)) return std::nullopt;
  return Offset{known->expected - request_sequences_begin - 1};
}

ProducerTable::Opened TopicPublishing::open_request(std::uint64_t id, SessionProducer& producer,
                                                    ProducerTable::Opener opener) {
  opener.user = parts_.owners.owner_for(opener.user);
  const auto opened = parts_.producers.open_request(id, producer, opener);
  parts_.activity.want_dispatch();  // to save and admit it
  return opened;
}

BatchIdentity TopicPublishing::request_identity(std::uint64_t id) const {
  return {.producer_id = id, .first_sequence = request_sequences_begin + parts_.store.next_offset().value};
}

PublishOutcome TopicPublishing::publish(BatchBuilder& batch) {
  const Timestamp now = parts_.context.call_clock.now();
  parts_.activity.used_at(now);
  return appended(parts_.topic.publish(batch, now), batch.size_bytes());
}

PublishOutcome TopicPublishing::store(const OfferedBatch& batch, const Sequences& sequences) {
  const Timestamp now = parts_.context.call_clock.now();
  parts_.activity.used_at(now);
  return stored(parts_.topic.publish(batch, now), batch, sequences, now);
}

PublishOutcome TopicPublishing::store(const OfferedBatch& batch) {
  const Timestamp now = parts_.context.call_clock.now();
  parts_.activity.used_at(now);
  return appended(parts_.topic.publish(batch, now), batch.bytes.size());
}

PublishOutcome TopicPublishing::store_own(const OfferedBatch& batch, const Sequences& sequences) {
  const Timestamp now = parts_.context.call_clock.now();
  parts_.activity.used_at(now);
  const auto outcome = parts_.topic.offer(batch, now);
  if (outcome == PublishOutcome::refused && batch.records == 1) parts_.topic.counted(outcome, 1);
  const std::uint64_t appended_before = appended_;
  stored(outcome, batch, sequences, now);
  appended_ = appended_before;  // no client waits for it
  return outcome;
}

/// Called after each append of a producer with sequence numbers.
PublishOutcome TopicPublishing::stored(PublishOutcome outcome, const OfferedBatch& batch,
                                       const Sequences& sequences, Timestamp now) {
  if (outcome == PublishOutcome::accepted) parts_.known.stored(sequences, now);
  return appended(outcome, batch.bytes.size());
}

/// Called after each append. Counts the bytes that a start has to read to know the producers.
PublishOutcome TopicPublishing::appended(PublishOutcome outcome, std::uint64_t bytes) {
  if (outcome == PublishOutcome::accepted) {
    parts_.known.appended(bytes);
    ++appended_;
  }
  parts_.reports.appended(outcome);
  return outcome;
}

/// Reads the clock once for all batches of a call of the loop, which received them together.
void TopicPublishing::published() {
  if (appended_ > 0) {
    const auto took = EventLoop::Clock::now() - parts_.context.loop.call_time();
    parts_.context.latencies.append.record(
        std::chrono::duration_cast<std::chrono::microseconds>(took).count(), std::exchange(appended_, 0));
  }
  parts_.dispatch.published();
}

std::uint64_t TopicPublishing::batch_bytes_max() const {
  const auto& settings = parts_.topic.definition().settings;
  std::uint64_t most = UINT32_MAX;
  if (settings.broker_type != protocol::BrokerType::file) most = std::min(most, settings.ring_bytes);
  if (settings.broker_type != protocol::BrokerType::queue && settings.capacity_bytes > 0)
    most = std::min(most, settings.capacity_bytes);
  return most;
}

}  // namespace lightq::broker
