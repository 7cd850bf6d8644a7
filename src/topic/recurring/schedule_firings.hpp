/// Publishes the messages of one recurring schedule. Layer: topic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/types.hpp>

#include "net/timers/wall_timers.hpp"
#include "recurring/firing_times.hpp"
#include "recurring/recurring_schedule.hpp"
#include "topic/recurring/schedule_state.hpp"
#include "topic/runtime/own_producer.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Publishes through a producer of the broker's own (OwnProducer). The id is the schedule's incarnation. The
/// number of a message is the time of its firing in seconds. So the topic itself knows the last firing that
/// it has, and stores none twice, after any crash.
///
/// If several firings are due, only the newest is published, and the others are left out. That is so after
/// the clock was set forward, while the topic has no space, and after a start if firings were missed and the
/// settings say `once`. If the clock is set back before anything has fired, firings count as missed up to the
/// new time only. RecurringOffice owns it. Thread: the reactor's.
class ScheduleFirings final : private OwnProducer::User {
 public:
  /// Lifetime: the topic ends the producer before it is destroyed, or the producer is destroyed first;
  /// `context` outlives it.
  ScheduleFirings(ReactorContext& context, TopicRuntime& topic, std::string name, RecurringSchedule schedule);
  ~ScheduleFirings() override;

  /// Whether firings before `begin` count as missed.
  enum class Begins : std::uint8_t {
    at_start,  ///< the topic was opened: a firing before now was missed
    running,   ///< the schedule is new, or was changed or resumed: earlier firings are before its `since`
  };
  /// Opens the producer, and fires from then on. Requires: called once.
  void begin(Begins begins);
  [[nodiscard]] ScheduleState state() const;

 private:
  // Implements OwnProducer::User.
  void opened(std::uint64_t expected) override;
  void admitted() override;
  void go_on() override { publish_newest(); }
  void ended() override { stop_timer(); }
  void cannot_open(const std::string& why) override;

  void skip_missed();
  void clock_was_set_back();
  void arm();
  void publish_newest();
  void store(Timestamp firing);
  void stored(Timestamp firing);
  void give_up(Timestamp firing, const std::string& why);
  void report_waiting(const std::string& message, const std::string& why);
  void stop_timer();
  [[nodiscard]] std::string where() const;

  ReactorContext& context_;
  TopicRuntime& topic_;
  const std::string name_;
  const RecurringSchedule schedule_;
  std::optional<FiringTimes> times_;  // nothing: the rule or the zone cannot be used here
  OwnProducer producer_;
  bool has_begun_ = false;            // the producer was admitted before
  std::optional<Timestamp> started_;  // firings up to here were missed
  Timestamp after_missed_;            // after_ without that
  Timestamp after_;                   // firings up to here are published, or left out
  std::optional<Timestamp> last_;     // the newest that is published
  std::uint64_t fired_ = 0;
  WallTimers::TimerId due_ = 0;  // the next firing
};

}  // namespace lightq::broker
