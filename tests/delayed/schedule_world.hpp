/// A schedule, the log that it moves to, and a model of plain containers that is compared with both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "delayed/delayed_query.hpp"
#include "delayed/schedule.hpp"
#include "log/segment_log/segment_log.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::test {

/// Runs a schedule on a disk in memory, with a clock that steps. Each step of the schedule is checked against
/// the model: the messages that leave, their order, and that none is early. A restart checks that each
/// message is waiting or in the log, once, unless it was cancelled or may have been lost.
class ScheduleWorld {
 public:
  struct Options {
    std::uint64_t segment_bytes = 64 * limits::KiB;
    std::size_t planned = 64;  ///< messages at most
  };
  explicit ScheduleWorld(std::uint64_t seed, Options options);
  explicit ScheduleWorld(std::uint64_t seed) : ScheduleWorld(seed, Options{}) {}
  ~ScheduleWorld();

  // Operations. All of them work also while the disk fails.

  void publish(std::size_t messages);
  /// `dues`: as records have them. `payload_bytes`: of each message; 0: random.
  void publish_due(const std::vector<std::int64_t>& dues, std::size_t payload_bytes = 0);
  /// Publishes messages of one length, all but perhaps one with the same due time.
  void publish_alike(std::size_t messages);
  void step_clock(std::int64_t us) { now_ += us; }
  /// Plans, and moves the messages that may leave.
  void pump();
  void sync_schedule();
  void sync_log();
  void cancel_some();
  void reschedule_some();
  void maintain();
  /// Compares a part of the list of waiting messages with the model.
  void list_some();
  /// Ends the process; the operating system keeps all that was written.
  void kill() { restart(false); }
  void power_cut() { restart(true); }

  /// Does one random operation.
  void step();
  /// Syncs and pumps until nothing waits that is due within `us`. Checks that all of it has left.
  void finish(std::int64_t us);

  FaultyStorage storage;
  std::mt19937_64 random;
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] broker::Schedule& schedule() { return *schedule_; }
  [[nodiscard]] log::SegmentLog& schedule_log() { return *schedule_log_; }
  [[nodiscard]] log::SegmentLog& log() { return *log_; }
  [[nodiscard]] std::size_t in_log() const { return in_log_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::size_t lost() const { return lost_; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  struct Change {
    std::int64_t due = 0;
    Offset end;  // of the schedule's log: durable when that is
  };
  struct Message {
    std::string payload;
    std::vector<Change> dues;  // the last one counts; a power cut may restore earlier ones
    bool is_durable = false;
    bool is_moved = false;
    std::optional<Offset> cancelled;  // the end of the record
    bool is_gone = false;             // cancelled durably, or lost when it was not durable
  };
  void open();
  void restart(bool power_is_cut);
  void check_restart(bool power_is_cut);
  void note_durable();
  void fail(const std::string& what);
  void move_due();
  void check_sums();
  [[nodiscard]] std::size_t some(std::size_t most) { return random() % most; }
  std::vector<std::uint64_t> some_numbers();
  [[nodiscard]] std::map<std::string, int> payloads_in_log();
  [[nodiscard]] std::uint64_t expected_in_log();

  const Options options_;
  std::int64_t now_ = 1'700'000'000'000'000;
  std::optional<log::SegmentPool> pool_;
  std::unique_ptr<log::SegmentLog> log_;
  std::unique_ptr<log::SegmentLog> schedule_log_;
  std::unique_ptr<broker::Schedule> schedule_;
  std::vector<Message> messages_;
  std::map<std::uint64_t, std::size_t> waiting_;             // by number: index in messages_
  std::set<std::pair<std::int64_t, std::uint64_t>> by_due_;  // of waiting_
  std::uint64_t next_sequence_of_producer_ = 0;
  std::size_t in_log_ = 0;
  std::size_t lost_ = 0;
  std::string wrong_;
};

}  // namespace lightq::test
