/// Ends the messages of a group that have expired. Layer: delivery.
#pragma once

#include <cstdint>
#include <span>

#include <lightq/base/types.hpp>

#include "delivery/expiry/expiry_index.hpp"
#include "delivery/state/counted_ranges.hpp"

namespace lightq::broker {

class GroupDeaths;
class GroupMessages;

/// Follows the topic's expired messages for one group: passes those at the group's position, ends those that
/// wait for another delivery, and makes those dead that the group keeps for the dead-letter topic.
/// GroupFailures owns it. Thread: the reactor's.
class ExpiredMessages {
 public:
  /// Lifetime: both outlive it.
  ExpiredMessages(GroupMessages& messages, GroupDeaths& deaths) : messages_(messages), deaths_(deaths) {}

  /// Follows the expired messages, without any consumer. Does a limited amount of work. Returns true if it
  /// could go on at once.
  bool tend();
  /// Ends messages that have expired and wait no more: they are finished, or dead if the settings say so.
  /// Requires: the ranges ascend.
  void end(const CountedRanges& ranges);
  /// Returns true if some of the messages have expired; protected ones may be among them.
  [[nodiscard]] bool any_in(const CountedRanges& ranges) const;
  /// Ends those of the messages that have expired, and returns the others. Requires: any_in, and as for
  /// `end`.
  [[nodiscard]] CountedRanges end_some_of(const CountedRanges& ranges);
  /// Ends messages before `first` that wait and have expired; of very many, 16,384 parts. The others stay.
  void end_before(Offset first);
  /// Protects messages from expiry until they are finished or dead. Requires: the ranges ascend.
  void protect(std::span<const OffsetRange> ranges);
  /// Returns true if expired messages ahead of the group cannot die, because the redelivery queue is full.
  [[nodiscard]] bool wait_for_room() const;
  /// Returns how many messages of the group have expired, those ahead of it included.
  [[nodiscard]] std::uint64_t counted() const;

 private:
  [[nodiscard]] ExpiryIndex::Part part_at(Offset offset) const;
  [[nodiscard]] bool end_waiting();
  [[nodiscard]] bool bury_kept();
  [[nodiscard]] OffsetRange take_kept();

  GroupMessages& messages_;
  GroupDeaths& deaths_;
};

}  // namespace lightq::broker
