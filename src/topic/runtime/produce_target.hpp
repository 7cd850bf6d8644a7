/// Where a producer's batches go: the topic's log, or its schedule of delayed messages. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/base/types.hpp>

#include "delivery/producers/durable_producers.hpp"
#include "delivery/topic.hpp"
#include "topic/runtime/topic_producers.hpp"

namespace lightq::broker {

/// Stores the batches of producers over sessions. Each target has its own known producers, so one producer's
/// sequence numbers never span two logs. Implementations: TopicPublishing (the log), SchedulePublishing.
/// Lifetime: until the target has ended the producer. Thread: the reactor's.
class ProduceTarget {
 public:
  ProduceTarget() = default;
  ProduceTarget(const ProduceTarget&) = delete;
  ProduceTarget& operator=(const ProduceTarget&) = delete;

  /// Returns why the target cannot store these messages, or null. `batch`: checked, and not compressed. The
  /// text has static lifetime.
  [[nodiscard]] virtual const char* fault_of(const BatchView& batch) const = 0;

  /// Opens the producer `wanted`, new or known, for a client of `opener`'s user. Unless it is refused,
  /// `producer` is called with the results of its batches until it detaches or is ended.
  virtual ProducerTable::Opened open(ProducerIdentity wanted, SessionProducer& producer,
                                     ProducerTable::Opener opener) = 0;
  virtual void detach(SessionProducer& producer) = 0;
  /// Decides whether the batch is stored, is a duplicate, or is refused. Changes nothing.
  [[nodiscard]] virtual Admission admit(const Sequences& batch) const = 0;
  /// Returns memory of the log in which the batch that is stored next can be assembled before it is checked:
  /// see BatchLog::place_for_next. May be empty.
  virtual std::span<std::byte> place_for_next(std::size_t bytes) = 0;
  /// Stores the producer's next batch. Requires: accepting(), and `admit` returns `store`.
  virtual PublishOutcome store(const OfferedBatch& batch, const Sequences& sequences) = 0;
  /// Stores a batch without sequence numbers: it is stored again each time it is sent.
  virtual PublishOutcome store(const OfferedBatch& batch) = 0;
  /// Attaches a producer without an id, which may then wait: see TopicProducers::attach.
  virtual void attach(SessionProducer& producer) = 0;
  /// Called when `producer` found no space for a batch. It waits until its `resume` is called.
  virtual void hold(SessionProducer& producer) = 0;
  /// Returns true if the last batch that was not stored waits for the disk, not for a consumer.
  [[nodiscard]] virtual bool is_held_by_disk() const = 0;
  /// Calls `producer` when the durable offset has moved.
  virtual void await_durable(SessionProducer& producer) = 0;
  /// Requests a flush up to the present end, for a client that waits until that is durable.
  virtual void want_flush() = 0;
  /// Called once after batches were stored, at the end of a turn's input.
  virtual void published() = 0;
  /// Counts messages that a producer sent again, and that are stored already.
  virtual void count_duplicates(std::uint64_t /*messages*/) {}
  /// Counts messages that were refused because they are too long.
  virtual void count_too_long(std::uint64_t messages) = 0;

  /// Returns false if batches must wait for now.
  [[nodiscard]] virtual bool accepting() const = 0;
  [[nodiscard]] virtual std::uint64_t message_bytes_max() const = 0;
  /// Returns the length in bytes of the longest batch that can ever be stored.
  [[nodiscard]] virtual std::uint64_t batch_bytes_max() const = 0;
  /// Returns the next offset (in the schedule: the next number) and the end of what survives a power cut.
  [[nodiscard]] virtual LogEnds ends() const = 0;
  /// Returns true if the target survives the broker's end, so that it can confirm messages as flushed.
  [[nodiscard]] virtual bool is_durable() const = 0;
  /// Returns the incarnation of the target's log: offsets or numbers of another one have no meaning here.
  [[nodiscard]] virtual std::uint64_t target_incarnation() const = 0;

 protected:
  ~ProduceTarget() = default;
};

}  // namespace lightq::broker
