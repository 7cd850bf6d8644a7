/// Makes messages of a group dead, and records it. Layer: delivery.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/types.hpp>

#include "delivery/attempts/attempt_rules.hpp"
#include "delivery/dead/dead_message.hpp"
#include "delivery/state/counted_ranges.hpp"

namespace lightq::broker {

class GroupMessages;

/// Puts messages among the dead ones of a group, counts them, and keeps the times of first failures of those
/// that live. GroupFailures owns it. Thread: the reactor's.
class GroupDeaths {
 public:
  /// Lifetime: both outlive it.
  GroupDeaths(GroupMessages& messages, const AttemptRules& rules) : messages_(messages), rules_(rules) {}

  /// Makes messages dead: parked, or waiting for the dead-letter topic. Those that can no longer be read do
  /// not die: they are lost. Returns how many died. Requires: the ranges ascend, and the messages are neither
  /// in flight nor wait.
  std::uint64_t die(const CountedRanges& ranges, DeathCause cause, const std::string& reason, Timestamp time);
  /// Notes the time of a failure of messages that may live, if it is their first one. Requires: there are
  /// some, and they ascend.
  void note_failures(const CountedRanges& ranges, Timestamp time);
  /// Forgets when messages failed for the first time, because they are finished.
  void forget_failures(OffsetRange range);

  /// Returns true if too many dead messages wait for their transfer.
  [[nodiscard]] bool is_outbox_full() const;
  /// Returns how many messages have died; died_expired() how many of them because they expired. No delivery
  /// of the latter ended.
  [[nodiscard]] std::uint64_t died() const { return died_; }
  [[nodiscard]] std::uint64_t died_expired() const { return died_expired_; }

 private:
  GroupMessages& messages_;
  const AttemptRules& rules_;
  std::uint64_t died_ = 0;
  std::uint64_t died_expired_ = 0;
};

}  // namespace lightq::broker
