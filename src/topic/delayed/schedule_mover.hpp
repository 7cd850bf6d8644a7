/// Moves due messages from a topic's schedule to its log. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "delayed/schedule.hpp"
#include "net/event_loop.hpp"
#include "net/timers/wall_timers.hpp"
#include "topic/delayed/schedule_parts.hpp"

namespace lightq::broker {

/// A producer of the topic, like those of sessions: its id is known durably before it begins, it waits for
/// space as they do, and it ends with the topic. Its id is the schedule's incarnation, and it is the broker's
/// own (ProducerTable::brokers_own), so a batch that a start sends again is not stored again. It plans and
/// moves a bounded amount in each turn of the loop, and sleeps until the next message is due.
/// ScheduleWork owns it. Thread: the reactor's.
class ScheduleMover final : public SessionProducer, private EventLoop::Source {
 public:
  /// Lifetime: `parts` outlives this object.
  explicit ScheduleMover(const ScheduleParts& parts) : parts_(parts) {}
  ~ScheduleMover() override;

  /// Sets a function that is called at the beginning of each turn in which the mover was woken.
  void call_first(std::function<void()> call) { call_first_ = std::move(call); }
  /// Opens the producer. It begins in a later turn of the loop.
  void open();
  /// Works soon: messages have arrived, or more of a log is durable.
  void wake() { parts_.owner.context.loop.call_soon(*this); }
  /// Returns why messages that are due are not in the topic's log; empty: none waits for anything but its due
  /// time.
  [[nodiscard]] const std::string& waiting_by() const { return waiting_by_; }
  /// Does nothing more. Called when the topic stops.
  void stop();

  // Implements SessionProducer.
  [[nodiscard]] std::uint64_t producer_id() const override { return parts_.incarnation; }
  [[nodiscard]] bool needs_durable() const override { return false; }
  void admitted() override;
  bool resume() override;
  bool durable_moved() override;
  void end(ClientError code, const std::string& why) override;

 private:
  enum class Moved : std::uint8_t {
    all,      ///< nothing more is due now
    part,     ///< continues in the next turn
    no_space  ///< waits for the topic
  };

  void on_ready() override;
  void work();
  bool plan(Timestamp now);
  Moved move(Timestamp now);
  Moved store_batch(Timestamp now);
  Moved store_refused(Admission admission, Timestamp now);
  bool give_up_first(Timestamp now);
  void forgotten(const std::string& why);
  void note_moved(Timestamp now);
  void after_move();
  void arm(Timestamp now);
  void retry_after(std::int64_t us);

  const ScheduleParts& parts_;
  std::function<void()> call_first_;
  MoveBatch batch_;
  bool is_open_ = false;
  bool is_admitted_ = false;
  bool is_held_ = false;  // waits for space in the topic
  bool is_stopped_ = false;
  std::string waiting_by_;
  bool has_moved_ = false;            // in this turn
  Timestamp moved_at_;                // the last time
  std::size_t batch_bytes_ = 1;       // of the next batch
  std::uint64_t next_in_memory_ = 0;  // the next sequence number, for a schedule in memory
  WallTimers::TimerId timer_ = 0;
  std::optional<Timestamp> armed_for_;
  EventLoop::TimerId retry_ = 0;
};

}  // namespace lightq::broker
