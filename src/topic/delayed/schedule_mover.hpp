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
#include "topic/runtime/own_producer.hpp"

namespace lightq::broker {

/// Moves messages through a producer of the broker's own (OwnProducer). Its id is the schedule's incarnation.
/// Plans and moves a bounded amount in each turn of the loop, and sleeps until the next message is due.
/// ScheduleWork owns it. Thread: the reactor's.
class ScheduleMover final : private OwnProducer::User, private EventLoop::Source {
 public:
  /// Lifetime: `parts` outlives this object.
  explicit ScheduleMover(const ScheduleParts& parts);
  ~ScheduleMover() override;

  /// Sets a function that is called at the beginning of each turn in which the mover was woken.
  void call_first(std::function<void()> call) { call_first_ = std::move(call); }
  /// Opens the producer. It begins in a later turn of the loop.
  void open() { producer_.open(); }
  /// Works soon: messages have arrived, or more of a log is durable.
  void wake() { parts_.owner.context.loop.call_soon(*this); }
  /// Returns why messages that are due are not in the topic's log; empty: none waits for anything but its due
  /// time.
  [[nodiscard]] const std::string& waiting_by() const { return producer_.waiting_by(); }
  /// Does nothing more. Called when the topic stops.
  void stop();

 private:
  enum class Moved : std::uint8_t {
    all,      ///< nothing more is due now
    part,     ///< continues in the next turn
    no_space  ///< waits for the topic
  };

  // Implements OwnProducer::User.
  void admitted() override { wake(); }
  void go_on() override { work(); }
  void durable_moved() override { wake(); }
  void ended() override;
  void cannot_open(const std::string& why) override;

  void on_ready() override;
  void work();
  bool plan(Timestamp now);
  Moved move(Timestamp now);
  Moved store_batch(Timestamp now);
  Moved stored(OwnProducer::Stored stored, Timestamp now);
  void note_moved(Timestamp now);
  bool give_up_first(Timestamp now);
  void wait(const std::string& why);
  void after_move();
  void arm(Timestamp now);

  const ScheduleParts& parts_;
  OwnProducer producer_;
  std::function<void()> call_first_;
  MoveBatch batch_;
  bool has_moved_ = false;            // in this turn
  Timestamp moved_at_;                // the last time
  std::size_t batch_bytes_ = 1;       // of the next batch
  std::uint64_t next_in_memory_ = 0;  // the next sequence number, for a schedule in memory
  WallTimers::TimerId timer_ = 0;
  std::optional<Timestamp> armed_for_;
};

}  // namespace lightq::broker
