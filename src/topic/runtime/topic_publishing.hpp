/// Takes messages from a topic's producers: admits them and appends batches. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <lightq/base/batch_builder.hpp>

#include "delivery/producers/durable_producers.hpp"
#include "delivery/topic.hpp"
#include "store/topic_store.hpp"
#include "topic/reactor_context.hpp"
#include "topic/runtime/produce_target.hpp"
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
class TopicPublishing final : public PlainProducerHost, public ProduceTarget {
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
    const LogLives& lives;
  };

  explicit TopicPublishing(const Parts& parts)
      : parts_(parts), batch_bytes_target_(parts.topic.batch_bytes_target()) {}

  // Implements ProduceTarget, for sessions.
  [[nodiscard]] const char* fault_of(const BatchView& /*batch*/) const override { return nullptr; }
  ProducerTable::Opened open(ProducerIdentity wanted, SessionProducer& producer,
                             ProducerTable::Opener opener) override;
  void detach(SessionProducer& producer) override {
    parts_.producers.detach(producer);
    parts_.activity.want_ticks();  // its last use is saved
  }
  [[nodiscard]] Admission admit(const Sequences& batch) const override {
    return parts_.producers.admit(batch);
  }
  std::span<std::byte> place_for_next(std::size_t bytes) override {
    return parts_.topic.place_for_next(bytes);
  }
  PublishOutcome store(const OfferedBatch& batch, const Sequences& sequences) override;
  /// Stores a batch of one of the broker's own producers. It keeps a batch that finds no space, and splits
  /// one that is too large. So these count as neither rejected nor refused, unless a single message is too
  /// large.
  PublishOutcome store_own(const OfferedBatch& batch, const Sequences& sequences);
  PublishOutcome store(const OfferedBatch& batch) override;
  void attach(SessionProducer& producer) override { parts_.producers.attach(producer); }

  // Requests with an id, each of one message.

  /// Returns the offset of the message that the request with this id has stored; nothing if it has stored
  /// none, or is not known any more.
  [[nodiscard]] std::optional<Offset> stored_by_request(std::uint64_t id) const;
  /// Returns true if a request with this id is under way.
  [[nodiscard]] bool has_request(std::uint64_t id) const { return parts_.producers.is_connected(id); }
  /// Opens a request: `producer` may store its message once it is admitted. Requires: !has_request(id).
  /// Errors: as of `open`; unknown_producer if the id is that of another producer.
  ProducerTable::Opened open_request(std::uint64_t id, SessionProducer& producer,
                                     ProducerTable::Opener opener);
  /// Returns the identity of the batch with which the request stores its message next.
  [[nodiscard]] BatchIdentity request_identity(std::uint64_t id) const;
  void hold(SessionProducer& producer) override {
    parts_.producers.note_held(producer);
    parts_.held.hold();
  }
  [[nodiscard]] bool is_held_by_disk() const override { return parts_.topic.held_by_disk(); }
  void await_durable(SessionProducer& producer) override { parts_.producers.await_durable(producer); }
  void want_flush() override { parts_.store.request_flush(parts_.store.next_offset()); }
  void count_duplicates(std::uint64_t messages) override { duplicates_ += messages; }
  /// Returns how many messages were sent again although they were stored.
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
  void count_too_long(std::uint64_t messages) override {
    count(parts_.context.settings.limits_reached, Limit::message_bytes_max, messages);
  }
  [[nodiscard]] std::uint64_t batch_bytes_max() const override;
  [[nodiscard]] LogEnds ends() const override { return LogEnds::of(parts_.store); }
  [[nodiscard]] bool is_durable() const override { return parts_.store.is_durable(); }
  [[nodiscard]] std::uint64_t target_incarnation() const override { return parts_.lives.incarnation(); }

  // Implements PlainProducerHost; some of these functions ProduceTarget, too.
  [[nodiscard]] bool accepting() const override {
    return !parts_.activity.is_stopping() && parts_.topic.accepting();
  }
  PublishOutcome publish(BatchBuilder& batch) override;
  void published() override;
  void count_refused(std::uint64_t messages) override {
    parts_.topic.counted(PublishOutcome::refused, messages);
    count_too_long(messages);
  }
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return parts_.context.settings.message_bytes_max;
  }
  [[nodiscard]] std::size_t batch_bytes_target() const override { return batch_bytes_target_; }
  BatchBuilder& batch() override { return parts_.context.batch; }
  void inlet_held() override { parts_.held.hold(); }

 private:
  PublishOutcome stored(PublishOutcome outcome, const OfferedBatch& batch, const Sequences& sequences,
                        Timestamp now);
  PublishOutcome appended(PublishOutcome outcome, std::uint64_t bytes);

  const Parts parts_;
  const std::size_t batch_bytes_target_;
  std::uint64_t appended_ = 0;    // batches since the last published()
  std::uint64_t duplicates_ = 0;  // messages
};

}  // namespace lightq::broker
