/// Takes messages from a topic's producers: admits them and appends batches. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "delivery/producers/durable_producers.hpp"
#include "delivery/topic.hpp"
#include "store/topic_store.hpp"
#include "topic/reactor_context.hpp"
#include "topic/runtime/state_owners.hpp"
#include "topic/runtime/topic_activity.hpp"
#include "topic/runtime/topic_dispatch.hpp"
#include "topic/runtime/topic_producers.hpp"
#include "topic/runtime/topic_reports.hpp"
#include "topic/runtime/waiting_producers.hpp"
#include "topic/topic_endpoints.hpp"

namespace lightq::broker {

/// Appends the batches of plain producers and of producers over sessions to the topic's log.
/// TopicRuntime owns it; sessions and plain producers' connections call it. Thread: the reactor's.
class TopicPublishing final : public PlainProducerHost {
 public:
  /// Lifetime: all of them outlive this.
  struct Parts {
    ReactorContext& context;
    Topic& topic;
    TopicStore& store;
    DurableProducers& known;
    TopicProducers& producers;
    WaitingProducers& held;
    TopicDispatch& dispatch;
    TopicActivity& activity;
    TopicReports& reports;
    const StateOwners& owners;
  };

  explicit TopicPublishing(const Parts& parts)
      : parts_(parts), batch_bytes_target_(parts.topic.batch_bytes_target()) {}

  // Sessions.

  /// Opens the producer `wanted`, new or known, for a client of `opener`'s user. Unless it is refused,
  /// `producer` is called with the results of its batches until it detaches or is ended.
  ProducerTable::Opened open(ProducerIdentity wanted, SessionProducer& producer,
                             ProducerTable::Opener opener);
  void detach(SessionProducer& producer) {
    parts_.producers.detach(producer);
    parts_.activity.want_ticks();  // its last use is saved
  }
  /// Returns memory of the log in which the batch that is stored next can be assembled before it is checked:
  /// see BatchLog::place_for_next.
  std::span<std::byte> place_for_next(std::size_t bytes) { return parts_.topic.place_for_next(bytes); }
  /// Stores the producer's next batch.
  PublishOutcome store(const OfferedBatch& batch, const Sequences& sequences);
  /// Called when `producer` found no space for a batch. It waits until its `resume` is called.
  void hold(SessionProducer& producer) {
    parts_.producers.note_held(producer);
    parts_.held.hold();
  }
  /// Returns true if the last batch that was not stored waits for the disk, not for a consumer.
  [[nodiscard]] bool is_held_by_disk() const { return parts_.topic.held_by_disk(); }
  /// Calls `producer` when the durable offset has moved.
  void await_durable(SessionProducer& producer) { parts_.producers.await_durable(producer); }
  /// Requests a flush of the log up to its present end, for a client that waits until that is durable.
  void want_flush() { parts_.store.request_flush(parts_.store.next_offset()); }
  /// Counts messages that were refused because they are too long.
  void count_too_long(std::uint64_t messages) {
    count(parts_.context.settings.limits_reached, Limit::message_bytes_max, messages);
  }
  /// Returns the length in bytes of the longest batch that can ever be stored.
  [[nodiscard]] std::uint64_t batch_bytes_max() const;

  // Implements PlainProducerHost.
  [[nodiscard]] bool accepting() const override {
    return !parts_.activity.is_stopping() && parts_.topic.accepting();
  }
  PublishOutcome publish(BatchBuilder& batch) override;
  void published() override { parts_.dispatch.published(); }
  void count_refused(std::uint64_t messages) override {
    parts_.topic.count_refused(messages);
    count_too_long(messages);
  }
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return parts_.context.settings.message_bytes_max;
  }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return batch_bytes_target_; }
  BatchBuilder& batch() override { return parts_.context.batch; }
  void inlet_held() override { parts_.held.hold(); }

 private:
  PublishOutcome appended(PublishOutcome outcome, std::uint64_t bytes);

  const Parts parts_;
  const std::size_t batch_bytes_target_;
};

}  // namespace lightq::broker
