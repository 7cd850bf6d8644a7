/// Decides about returned messages of a group: another delivery, a delay, or death. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "delivery/attempts/attempt_rules.hpp"
#include "delivery/attempts/flood_brake.hpp"
#include "delivery/attempts/group_counters.hpp"
#include "delivery/attempts/group_setup.hpp"
#include "delivery/expired_messages.hpp"
#include "delivery/group_deaths.hpp"
#include "delivery/state/counted_ranges.hpp"
#include "delivery/state/delivery_failure.hpp"
#include "delivery/state/group_time.hpp"

namespace lightq::broker {

class GroupMessages;
struct GroupStanding;

/// Why a group delivers nothing, apart from a pause of the topic.
enum class PauseCause : std::uint8_t {
  none,
  command,       ///< a command paused it
  failing,       ///< most of its deliveries ended dead; until a command resumes it
  dead_letters,  ///< more than `dead_waiting_max` dead messages wait for their transfer
};

/// The way in which messages were returned.
struct Return {
  ReturnCause cause = ReturnCause::released;
  SteadyTime now{};            ///< the default: the time is not known, and there is no back-off
  std::uint32_t delay_ms = 0;  ///< the consumer's wish; 0: none
  bool revoked = false;        ///< the broker took them back, without a failure
  bool several = false;        ///< the consumer ended, and had started several messages
};

/// Returns true if messages that were returned for this cause have failed.
[[nodiscard]] constexpr bool is_failure(ReturnCause cause) {
  return cause != ReturnCause::released && cause != ReturnCause::unstarted && cause != ReturnCause::untaken;
}

/// Applies the settings of a group to the messages that are returned or taken back. Counts how deliveries
/// end. ConsumerGroup owns it. Thread: the reactor's.
class GroupFailures {
 public:
  /// Lifetime: both outlive it.
  GroupFailures(GroupMessages& messages, const GroupStanding& standing)
      : messages_(messages), standing_(standing), deaths_(messages, rules_), expired_(messages, deaths_) {}
  GroupFailures(const GroupFailures&) = delete;
  GroupFailures& operator=(const GroupFailures&) = delete;

  [[nodiscard]] const AttemptRules& rules() const { return rules_; }
  [[nodiscard]] const protocol::GroupSettings& settings() const { return rules_.settings(); }
  /// Returns the dead-letter topic: the one of that name when it was set. 0: none.
  [[nodiscard]] TopicId target() const { return target_; }
  /// Changes the settings. Messages that wait follow the new ones when a walk over them is over. Returns true
  /// if messages were parked, because there is no dead-letter topic now.
  bool set(const GroupSetup& setup);
  /// Parks the messages of the outbox if there is no dead-letter topic. Those under way stay there until
  /// their own target has told whether it has them. Returns false if none was parked.
  bool park_without_target();
  /// The reason why dead messages do not move to the dead-letter topic; empty: they do.
  void set_transfer_trouble(std::string why) { transfer_trouble_ = std::move(why); }
  [[nodiscard]] const std::string& transfer_trouble() const { return transfer_trouble_; }
  /// Begins a walk over the messages that wait, because they were restored.
  void begin_walk();
  [[nodiscard]] bool is_walking() const { return walk_.has_value(); }
  /// Continues the walk with a limited amount of work.
  void walk(SteadyTime now);

  /// Puts messages back into the queue, or among the dead ones. `deliveries` of each range is the number of
  /// deliveries that count, so of failures. Requires: the ranges ascend.
  void put_back(const CountedRanges& ranges, const Return& how);
  /// Makes messages dead because a consumer said so. The ranges are as for `put_back`. `wall`: the time.
  void bury(const CountedRanges& ranges, const std::string& reason, Timestamp wall);

  /// Makes messages ready that were dead or finished, or expires them.
  void make_ready(const CountedRanges& ranges) { put_in_queue(ranges, {}); }

  /// Returns the part that makes messages dead.
  [[nodiscard]] GroupDeaths& deaths() { return deaths_; }
  [[nodiscard]] const GroupDeaths& deaths() const { return deaths_; }
  /// Returns the part that ends messages which have expired.
  [[nodiscard]] ExpiredMessages& expired() { return expired_; }

  /// Takes the present counters. Called in each dispatch of a group that has settings or dead messages.
  void sample(SteadyTime now) {
    brake_.note(now, counters().ended(), deaths_.died() - deaths_.died_expired());
  }
  /// Returns true if the group has to pause: `pause_when_failing` is set, and most deliveries end dead.
  [[nodiscard]] bool is_failing() const { return settings().pause_when_failing && brake_.is_failing(); }
  /// Called when a command has resumed the group.
  void resumed() { brake_.reset(); }

  /// Returns how the group's deliveries ended.
  [[nodiscard]] GroupCounters counters() const;
  /// Returns how deliveries ended recently. `now`: the wall time, not before the last dispatch.
  [[nodiscard]] FloodBrake::Recent recent(Timestamp now) const;

 private:
  void count(ReturnCause cause, bool revoked, std::uint64_t messages);
  [[nodiscard]] Timestamp wall_time_of(SteadyTime now) const;
  void put_in_queue(const CountedRanges& ranges, const Return& how);
  void put_unexpired_in_queue(const CountedRanges& ranges, const Return& how);

  GroupMessages& messages_;
  const GroupStanding& standing_;
  AttemptRules rules_;
  TopicId target_;
  std::string transfer_trouble_;
  GroupDeaths deaths_;
  ExpiredMessages expired_;
  GroupCounters counters_;  // without acknowledged, dead and expired messages
  FloodBrake brake_;
  std::optional<Offset> walk_;  // messages from here on do not follow the settings yet
};

}  // namespace lightq::broker
