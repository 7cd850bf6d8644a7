/// Attaches, admits, ends and detaches a topic's session consumers. Layer: topic.
#include "topic/runtime/topic_consumers.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
// The most work of requeueing detached consumers' messages in a turn: about two milliseconds.
constexpr std::uint64_t leave_work_max = 512 * limits::KiB;
}  // namespace

TopicConsumers::Attached* TopicConsumers::find(SessionConsumer& consumer) {
  const auto found = attached_.find(&consumer);
  return found == attached_.end() ? nullptr : &found->second;
}

TopicConsumers::Refusal TopicConsumers::open(const ConsumeRequest& asked, SessionConsumer& consumer,
                                             const LogLives& lives, std::uint64_t user, std::uint64_t owner) {
  ConsumerGroups& groups = topic_.groups();
  const auto opened = groups.open(asked, lives, user, owner);
  if (opened.refusal != ClientError::none) return {opened.refusal, opened.crowd};
  SessionConsumer* const former =
      opened.group->terms().mode == GroupMode::own ? opened.group->a_consumer() : nullptr;
  attached_[&consumer] = {opened.group, &groups.attach(*opened.group, consumer, asked, user)};
  if (former != nullptr) condemn(*former, ClientError::fenced, "another consumer has opened the cursor");
  waiting_.push_back(&consumer);
  return {};
}

void TopicConsumers::detach(SessionConsumer& consumer) {
  std::erase(waiting_, &consumer);
  std::erase_if(condemned_, [&](const Condemned& condemned) { return condemned.consumer == &consumer; });
  const auto found = attached_.find(&consumer);
  if (found == attached_.end()) return;
  const Attached attached = found->second;
  attached_.erase(found);
  attached.member->abandon();
  if (in_turn_ || !left_.empty() || TurnWork::in_turn() > leave_work_max) {
    left_.push_back(attached);
  } else {
    leave(attached);
  }
}

void TopicConsumers::leave(const Attached& attached) {
  ConsumerGroups& groups = topic_.groups();
  ConsumerGroup& group = *attached.group;
  groups.detach(group, *attached.member);
  // A group without a name ends with its consumer. A group that is not saved ends, too: no consumer knows of
  // it.
  const bool forgotten = group.name().empty() || (durable_ && groups.is_provisional(group));
  if (forgotten && group.consumers() == 0) groups.remove(group);
}

/// Detaches the consumer now. Calls its `end` in the next dispatch.
void TopicConsumers::condemn(SessionConsumer& consumer, ClientError code, std::string why) {
  detach(consumer);
  condemned_.push_back({&consumer, code, std::move(why)});
}

void TopicConsumers::wake(SessionConsumer& consumer) {
  if (const Attached* const attached = find(consumer)) attached->member->wake();
  activity_.want_dispatch();
}

bool TopicConsumers::add_credit(SessionConsumer& consumer, const Credit& credit) {
  activity_.want_dispatch();
  const Attached* const attached = find(consumer);
  return attached == nullptr || attached->member->add_credit(credit);
}

void TopicConsumers::acknowledge(SessionConsumer& consumer, const Ack& acknowledged) {
  const Attached* const attached = find(consumer);
  if (attached == nullptr) return;
  activity_.want_dispatch();
  const bool fits = attached->group->acknowledge(*attached->member, acknowledged);
  if (!fits) end_in_pieces(consumer, *attached->member);
}

void TopicConsumers::reject(SessionConsumer& consumer, const Rejection& rejected, SteadyTime now) {
  const Attached* const attached = find(consumer);
  if (attached == nullptr) return;
  activity_.want_dispatch();
  const bool fits = attached->group->reject(*attached->member, rejected, now);
  if (!fits) end_in_pieces(consumer, *attached->member);
}

void TopicConsumers::extend(SessionConsumer& consumer, const Extension& extended, SteadyTime now) {
  const Attached* const attached = find(consumer);
  if (attached == nullptr) return;
  activity_.want_dispatch();
  const bool fits = attached->group->extend(*attached->member, extended, now);
  if (!fits) end_in_pieces(consumer, *attached->member);
}

void TopicConsumers::end_in_pieces(SessionConsumer& consumer, const GroupMember& member) {
  count(limits_reached_, member.is_in_pieces() ? Limit::outstanding_ranges_max : Limit::group_ranges_total);
  const std::string why = member.is_in_pieces()
                              ? "more than " + std::to_string(member.pieces_max()) + " ranges of offsets"
                              : "more ranges of offsets than the broker keeps for a user, or for all users";
  condemn(consumer, ClientError::limit_reached, "the messages in flight form " + why);
}

bool TopicConsumers::has_in_flight(SessionConsumer& consumer) const {
  const auto found = attached_.find(&consumer);
  return found != attached_.end() && !found->second.member->outstanding().empty();
}

bool TopicConsumers::shares_group_with_others(SessionConsumer& consumer) const {
  const auto found = attached_.find(&consumer);
  if (found == attached_.end()) return false;
  const ConsumerGroup& group = *found->second.group;
  return group.members_of(found->second.member->user()) != group.members() || group.plain_consumers() > 0;
}

Result<Offset> TopicConsumers::seek(SessionConsumer& consumer, const StartPosition& to) {
  const Attached* const attached = find(consumer);
  if (attached == nullptr) return topic_.log().next_offset();
  activity_.want_dispatch();
  return topic_.groups().seek(*attached->group, to);
}

/// Runs `turn`, which calls consumers. A consumer may detach during a call, but its member of the group is
/// kept until the outermost turn is over.
template <typename Turn>
void TopicConsumers::in_turn(Turn&& turn) {
  const bool outermost = !std::exchange(in_turn_, true);
  turn();
  if (!outermost) return;
  in_turn_ = false;
  let_go();
}

/// Requeues the messages of detached consumers, some in each turn. When one client's session ends, its
/// messages in flight may be in a million ranges.
void TopicConsumers::let_go() {
  while (!left_.empty() && TurnWork::in_turn() <= leave_work_max) {
    const Attached attached = left_.front();
    left_.pop_front();
    leave(attached);
  }
}

Topic::DispatchResult TopicConsumers::dispatch(const DeliveryContext& context) {
  Topic::DispatchResult result;
  in_turn([&] {
    if (!condemned_.empty()) end_condemned();
    if (!waiting_.empty()) admit();
    result = topic_.dispatch(context);
  });
  result.more |= !left_.empty();
  if (result.held_back > 0) count(limits_reached_, Limit::returned_ranges_max, result.held_back);
  return result;
}

void TopicConsumers::end_condemned() {
  while (!condemned_.empty()) {
    const Condemned condemned = std::move(condemned_.front());
    condemned_.pop_front();
    condemned.consumer->end(condemned.code, condemned.why);
  }
}

void TopicConsumers::admit() {
  const ConsumerGroups& groups = topic_.groups();
  std::vector<SessionConsumer*> admitted;
  std::erase_if(waiting_, [&](SessionConsumer* consumer) {
    if (durable_ && !groups.is_saved(*find(*consumer)->group)) return false;
    admitted.push_back(consumer);
    return true;
  });
  for (SessionConsumer* const consumer : admitted) {
    Attached* const attached = find(*consumer);
    if (attached == nullptr) continue;  // it was detached while another was admitted
    const ConsumerGroup& group = *attached->group;
    attached->member->begin();
    consumer->admitted({group.upcoming(), group.committed(), attached->member->ack_timeout_ms()});
  }
}

void TopicConsumers::saved(const Result<void>& result) {
  if (result.ok()) return;
  const bool full = result.error().code == ErrorCode::no_space;
  const auto waiting = waiting_;
  for (SessionConsumer* const consumer : waiting) {
    if (topic_.groups().is_saved(*find(*consumer)->group)) continue;
    condemn(*consumer, full ? ClientError::no_space : ClientError::io_error,
            full ? "the disk is full" : "the disk cannot be written");
  }
}

void TopicConsumers::end(ClientError code, const std::string& why) {
  in_turn([&] {
    end_condemned();
    while (!attached_.empty()) {
      SessionConsumer* const consumer = attached_.begin()->first;
      detach(*consumer);
      consumer->end(code, why);
    }
  });
}

}  // namespace lightq::broker
