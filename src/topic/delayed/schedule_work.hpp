/// A topic's schedule at work: its log, producers, mover and saves. Layer: topic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/delayed_message.hpp"
#include "delayed/schedule.hpp"
#include "store/topic_store.hpp"
#include "topic/delayed/schedule_mover.hpp"
#include "topic/delayed/schedule_parts.hpp"
#include "topic/delayed/schedule_publishing.hpp"
#include "topic/found_topic.hpp"
#include "topic/runtime/producer_saves.hpp"
#include "topic/runtime/topic_reports.hpp"

namespace lightq::broker {

/// Runs a schedule: connects its parts, receives the reports of its store, and answers commands when they are
/// durable. TopicSchedule owns it. Thread: the reactor's.
class ScheduleWork final : public StoreEvents {
 public:
  using Answered = std::function<void(const Result<std::uint64_t>&)>;

  /// Opens a schedule on disk, or one in memory if `found` is null. `known_of_topic`: the producers that the
  /// topic's log knows, among them the mover of the found schedule. Errors: those of Schedule::restore.
  static Result<std::unique_ptr<ScheduleWork>> open(const ScheduleOwner& owner,
                                                    std::unique_ptr<FoundSchedule> found,
                                                    const DurableProducers& known_of_topic);
  ~ScheduleWork() override;

  [[nodiscard]] SchedulePublishing& publishing() { return publishing_; }
  [[nodiscard]] const SchedulePublishing& publishing() const { return publishing_; }
  [[nodiscard]] Schedule& schedule() { return schedule_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] std::size_t connected() const { return producers_.connected(); }

  /// Called after a command has changed messages.
  void changed();
  /// See TopicSchedule.
  void answer_when_durable(std::uint64_t messages, const Answered& answered);
  [[nodiscard]] DelayedStats stats() const;
  bool tick(Timestamp now);
  void begin_stop(ClientError why, const char* sentence);
  void flush_for_stop();
  [[nodiscard]] bool is_idle_on_disk() const { return store_ == nullptr || store_->is_idle(); }
  void when_idle_on_disk(std::function<void()> call) { store_->when_idle(std::move(call)); }

  // Implements StoreEvents.
  void on_durable() override;
  void on_readable() override {}
  void on_saved(StoredState what, const Result<void>& result) override;
  void on_health() override {}

 private:
  struct Waiting {
    Offset end;
    std::uint64_t messages = 0;
    Answered answered;
  };
  ScheduleWork(const ScheduleOwner& owner, std::unique_ptr<TopicStore> store,
               std::unique_ptr<DurableProducers> known, std::uint64_t incarnation);
  [[nodiscard]] static Schedule schedule_over(TopicStore* store);
  void log_moved();
  void save(Timestamp now);
  void answer_durable();

  const ScheduleOwner owner_;
  std::unique_ptr<TopicStore> store_;  // null: in memory
  std::unique_ptr<DurableProducers> known_;
  Schedule schedule_;
  TopicProducers producers_;
  const ScheduleParts parts_;
  ScheduleMover mover_;
  SchedulePublishing publishing_;
  std::unique_ptr<TopicReports> reports_;  // null: in memory
  std::unique_ptr<ProducerSaves> saves_;   // null: in memory
  std::vector<Waiting> waiting_;           // commands, in the order of their ends
  Timestamp damage_reported_;
  std::uint64_t damaged_ = 0;  // reported
};

}  // namespace lightq::broker
