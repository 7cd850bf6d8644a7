/// Gives finished messages back to their group. Layer: topic.
#include "topic/dead/group_give_back.hpp"

namespace lightq::broker {

bool GroupGiveBack::give_back(Offset message) {
  GroupMessages& messages = group_.messages();
  const OffsetRange range{message, message + 1};
  if (messages.next() <= message || is_in_flight(messages, message)) return true;
  RedeliveryQueue& redelivery = messages.redelivery();
  if (redelivery.has_dead() && redelivery.dead()->messages_in(range) > 0)
    return group_.dead().retry({.ranges = {range}}, message).messages > 0;
  if (redelivery.messages_in(range) == 0) group_.dead().revive(message);
  return true;
}

}  // namespace lightq::broker
