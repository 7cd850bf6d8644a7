/// Commands of the control socket on a topic: groups, their settings and dead messages, purging. Layer:
/// topic.
#include "topic/runtime/topic_commands.hpp"

#include <limits>

#include "delivery/offset_search.hpp"
#include "topic/log_settings.hpp"
#include "topic/runtime/dead_keys.hpp"

namespace lightq::broker {

Result<ConsumerGroup*> TopicCommands::group_of(const std::string& name) {
  if (ConsumerGroup* const found = topic_.groups().find(name)) return found;
  return Error{ErrorCode::group_not_found,
               "topic " + topic_.definition().name.text() + " has no group " + name};
}

void TopicCommands::delete_group(const std::string& group, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  if ((*found)->consumers() > 0) {
    return answered(Error{ErrorCode::group_in_use, "topic " + topic_.definition().name.text() + ", group " +
                                                       group + ": " + std::to_string((*found)->consumers()) +
                                                       " consumers are connected"});
  }
  topic_.groups().remove(**found);
  held_.resume();
  activity_.want_ticks();
  cursors_.answer_when_saved(0, answered);
}

void TopicCommands::set_paused(bool paused) {
  topic_.set_paused(paused);
  activity_.want_dispatch();
}

/// Wakes a topic that is idle: retention that is shorter now applies at its next tick. Producers that wait
/// may have space now, or be refused.
Result<void> TopicCommands::change(const protocol::TopicChange& change) {
  topic_.change(change);
  const auto& settings = topic_.definition().settings;
  if (has_files(settings.broker_type)) store_.set_limits(log_limits_of(settings));
  held_.resume_soon();
  activity_.want_ticks();
  return {};
}

void TopicCommands::set_group_paused(const std::string& group, bool paused, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  (*found)->set_paused(paused);
  cursors_.answer_when_saved(0, answered);
}

Result<protocol::GroupMove> TopicCommands::group_move(const std::string& group,
                                                      const protocol::GroupPlace& to) {
  using From = protocol::GroupPlace::From;
  const auto found = group_of(group);
  if (!found) return found.error();
  StartPosition place{StartPosition::From::next};
  if (to.from == From::first) place = {StartPosition::From::first};
  if (to.from == From::offset) place = {StartPosition::From::offset, to.value};
  if (to.from == From::time) place = {StartPosition::From::time, to.value * 1'000};  // from milliseconds
  const auto offset = offset_of(place, store_);
  if (!offset) return offset.error();
  const GroupMessages& messages = (*found)->messages();
  const OffsetRange stored{store_.first_offset(), store_.next_offset()};
  return protocol::GroupMove{.former_offset = (*found)->committed().value,
                             .offset = offset->value,
                             .former_pending = messages.undelivered_in(stored) + messages.unacknowledged(),
                             .pending = distance(*offset, stored.end)};
}

void TopicCommands::seek_group(const std::string& group, Offset to, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  (*found)->seek(to);
  held_.resume_soon();
  cursors_.answer_when_saved(0, answered);
}

void TopicCommands::purge_group(const std::string& group, const Answered& answered) {
  const auto found = group_of(group);
  if (!found) return answered(found.error());
  const std::uint64_t messages = topic_.groups().pass_over(**found);
  held_.resume_soon();
  cursors_.answer_when_saved(messages, answered);
}

void TopicCommands::set_group_settings(const std::string& group, const GroupSetup& setup,
                                       const Answered& answered) {
  const bool has_parked = topic_.groups().set_settings(group, setup);
  activity_.want_dispatch();
  has_parked ? cursors_.answer_when_saved(0, answered) : answered(std::uint64_t{0});
}

Result<DeadList> TopicCommands::list_dead(const std::string& group, const DeadFilter& filter, Offset from,
                                          std::size_t most) {
  const auto found = group_of(group);
  if (!found) return found.error();
  const GroupDead dead = (*found)->dead();
  if (!filter.key) return dead.list(filter, from, most);
  const DeadFound candidates = dead.find(filter, from, false);
  const KeyedMessages keyed = messages_with_key(reads_, candidates.ranges, *filter.key, most);
  return DeadList{.messages = dead.list(keyed.ranges),
                  .next = keyed.next ? keyed.next : candidates.next,
                  .unreadable = keyed.unreadable,
                  .is_pending = keyed.is_pending};
}

Result<DeadPiece> TopicCommands::act_on_dead(const std::string& group, DeadAction action,
                                             const DeadFilter& filter, Offset from) {
  const auto found = group_of(group);
  if (!found) return found.error();
  GroupDead dead = (*found)->dead();
  if (filter.key) return act_on_keyed(dead, action, filter, from);
  if (action == DeadAction::count) return dead.count(filter, from);
  const DeadPiece piece = action == DeadAction::retry ? dead.retry(filter, from) : dead.purge(filter, from);
  activity_.want_dispatch();
  if (action == DeadAction::purge) held_.resume_soon();
  return piece;
}

/// Acts on the messages with the filter's key. They are found and changed in one turn.
DeadPiece TopicCommands::act_on_keyed(GroupDead& dead, DeadAction action, const DeadFilter& filter,
                                      Offset from) {
  const DeadFound candidates = dead.find(filter, from, true);
  const KeyedMessages keyed =
      messages_with_key(reads_, candidates.ranges, *filter.key, std::numeric_limits<std::uint64_t>::max());
  DeadPiece piece{.next = keyed.next ? keyed.next : candidates.next,
                  .unreadable = keyed.unreadable,
                  .is_pending = keyed.is_pending};
  for (const OffsetRange& range : keyed.ranges) piece.messages += distance(range.begin, range.end);
  if (action == DeadAction::count || piece.messages == 0) return piece;
  action == DeadAction::retry ? dead.retry(keyed.ranges) : dead.purge(keyed.ranges);
  activity_.want_dispatch();
  if (action == DeadAction::purge) held_.resume_soon();
  return piece;
}

}  // namespace lightq::broker
