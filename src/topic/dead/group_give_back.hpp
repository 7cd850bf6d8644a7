/// Gives finished messages back to their group. Layer: topic.
#pragma once

#include <lightq/base/types.hpp>

#include "delivery/consumer_group.hpp"
#include "delivery/letters/give_back_mark.hpp"

namespace lightq::broker {

/// A view of a group for letters that are given back to it. Holds nothing. The caller of a function that
/// changes something must let the topic dispatch and save soon. A save has the messages and the marks of one
/// moment. Thread: the reactor's.
class GroupGiveBack {
 public:
  explicit GroupGiveBack(ConsumerGroup& group) : group_(group) {}

  /// Makes a message ready that the group has finished, as if it had never been delivered. A parked one
  /// becomes ready, too. One that is not finished stays as it is, because it will be delivered anyway. A
  /// message that the group has passed does not expire any more.
  /// Returns false, and changes nothing, if it waits for its transfer to a dead-letter topic. Takes a step
  /// for each member with messages in flight. The group's committed offset goes back. Requires: the log has
  /// the message.
  bool give_back(Offset message);
  [[nodiscard]] Offset end_of(TopicId letters, std::uint64_t run) const {
    return group_.messages().redelivery().give_back_marks().end_of(letters, run);
  }
  void mark(const GiveBackMark& mark) { group_.messages().redelivery().give_back_marks().set(mark); }

 private:
  ConsumerGroup& group_;
};

}  // namespace lightq::broker
