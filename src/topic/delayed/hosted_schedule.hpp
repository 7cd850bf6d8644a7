/// Opens a topic's schedule when it is needed, and passes calls on to it. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "topic/delayed/schedule_work.hpp"
#include "topic/runtime/topic_schedule.hpp"

namespace lightq::broker {

/// Implements TopicSchedule. Owns the schedule at work, if there is one. Thread: the reactor's.
class HostedSchedule final : public TopicSchedule {
 public:
  /// See make_topic_schedule.
  HostedSchedule(const ScheduleOwner& owner, const DurableProducers& known, OpenSchedule open);

  void start(std::unique_ptr<FoundSchedule> found) override;
  Result<ProduceTarget*> target() override;
  Result<DelayedList> list(const DelayedFilter& filter, DuePosition from, std::size_t most) override;
  Result<DelayedPiece> act(DelayedAction action, const DelayedFilter& filter, DuePosition from,
                           Timestamp due) override;
  void answer_when_durable(std::uint64_t messages, const Answered& answered) override;
  [[nodiscard]] bool is_made() const override { return work_ != nullptr || fault_; }
  [[nodiscard]] DelayedStats stats() const override;
  [[nodiscard]] std::size_t connected() const override;
  bool tick(Timestamp now) override;
  void begin_stop(ClientError why, const char* sentence) override;
  void flush_for_stop() override;
  [[nodiscard]] bool is_idle_on_disk() const override;
  void when_idle_on_disk(std::function<void()> call) override;

 private:
  Result<ScheduleWork*> opened();
  Result<void> begin(std::unique_ptr<FoundSchedule> found);
  Result<void> begin_again(Timestamp now);
  void note_fault(const Error& fault, Timestamp now);
  [[nodiscard]] std::string where() const;

  const ScheduleOwner owner_;
  const DurableProducers& known_;
  const OpenSchedule open_;
  std::unique_ptr<ScheduleWork> work_;  // null: no schedule yet, or it cannot be read
  std::optional<Error> fault_;          // why the schedule that is there cannot be read
  Timestamp failed_;                    // the last attempt, with fault_
  std::int64_t retry_us_ = 0;           // the time until the next one
};

}  // namespace lightq::broker
