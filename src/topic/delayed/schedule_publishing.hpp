/// Takes delayed messages from producers. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <lightq/base/batch_unpack.hpp>

#include "topic/delayed/schedule_mover.hpp"
#include "topic/delayed/schedule_parts.hpp"
#include "topic/runtime/produce_target.hpp"

namespace lightq::broker {

/// Stores the batches of producers in the schedule. It applies the topic's capacity and its overflow policy:
/// `block` holds the producer, `reject` refuses, and `drop_oldest` drops messages of the log, never a delayed
/// one. ScheduleWork owns it. Thread: the reactor's.
class SchedulePublishing final : public ProduceTarget {
 public:
  /// Lifetime: both outlive this object.
  SchedulePublishing(const ScheduleParts& parts, ScheduleMover& mover) : parts_(parts), mover_(mover) {}

  [[nodiscard]] const char* fault_of(const BatchView& batch) const override;
  ProducerTable::Opened open(ProducerIdentity wanted, SessionProducer& producer,
                             ProducerTable::Opener opener) override;
  void detach(SessionProducer& producer) override;
  [[nodiscard]] Admission admit(const Sequences& batch) const override {
    return parts_.producers.admit(batch);
  }
  /// A batch is checked before it is known to fit, so there is no such memory.
  std::span<std::byte> place_for_next(std::size_t /*bytes*/) override { return {}; }
  PublishOutcome store(const OfferedBatch& batch, const Sequences& sequences) override {
    return store_as(batch, &sequences);
  }
  PublishOutcome store(const OfferedBatch& batch) override { return store_as(batch, nullptr); }
  void attach(SessionProducer& producer) override { parts_.producers.attach(producer); }
  void hold(SessionProducer& producer) override;
  [[nodiscard]] bool is_held_by_disk() const override { return held_by_disk_; }
  void await_durable(SessionProducer& producer) override { parts_.producers.await_durable(producer); }
  void want_flush() override { flush_wanted_ = true; }
  /// Returns true if a flush was wanted that was not taken yet.
  [[nodiscard]] bool take_wanted_flush() { return std::exchange(flush_wanted_, false); }
  void published() override;
  void count_too_long(std::uint64_t messages) override { parts_.owner.publishing.count_too_long(messages); }
  [[nodiscard]] bool accepting() const override { return !parts_.owner.activity.is_stopping(); }
  [[nodiscard]] std::uint64_t message_bytes_max() const override {
    return parts_.owner.publishing.message_bytes_max();
  }
  [[nodiscard]] std::uint64_t batch_bytes_max() const override;
  [[nodiscard]] LogEnds ends() const override { return parts_.ends(); }
  [[nodiscard]] bool is_durable() const override { return parts_.store != nullptr; }
  [[nodiscard]] std::uint64_t target_incarnation() const override { return parts_.incarnation; }

  /// Resumes producers that wait for space. Returns true if none waits any more.
  bool resume();
  [[nodiscard]] bool has_held() const { return has_held_; }

 private:
  PublishOutcome store_as(const OfferedBatch& batch, const Sequences* sequences);
  [[nodiscard]] std::span<std::byte> unpacked(const OfferedBatch& batch);
  PublishOutcome outcome_of(log::AppendOutcome outcome, std::uint32_t records);

  const ScheduleParts& parts_;
  ScheduleMover& mover_;
  BatchUnpacker unpacker_;
  std::vector<std::byte> plain_;  // the last compressed batch, unpacked
  bool held_by_disk_ = false;
  bool flush_wanted_ = false;
  bool has_held_ = false;
  Timestamp disk_failed_;  // the last failure, while held_by_disk_
};

}  // namespace lightq::broker
