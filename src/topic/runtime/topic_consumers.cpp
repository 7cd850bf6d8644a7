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

TopicConsumers::Refusal TopicConsumers::open(const ConsumeRequest& asked, SessionConsumer& consumer,
                                             const LogLives& lives, std::uint64_t user, std::uint64_t owner) {
  ConsumerGroups& groups = topic_.groups();
  const auto opened = groups.open(asked, lives, user, owner);
  if (opened.refusal != ClientError::none) return {opened.refusal, opened.crowd};
  SessionConsumer* const former =
      opened.group->terms().mode == GroupMode::own ? opened.group->a_consumer() : nullptr;
  consumer.set_membership({opened.group, &groups.attach(*opened.group, consumer, asked, user)});
  attached_.insert(&consumer);
  if (former != nullptr) condemn(*former, ClientError::fenced, "another consumer has opened the cursor");
  waiting_.push_back(&consumer);
  return {};
}

void TopicConsumers::ends_by(const SessionConsumer& consumer, MemberEnd end) {
  if (GroupMember* const member = consumer.membership().member) member->ends_by(end);
}

void TopicConsumers::detach(SessionConsumer& consumer) {
  std::erase(waiting_, &consumer);
  std::erase_if(condemned_, [&](const Condemned& condemned) { return condemned.consumer == &consumer; });
  if (attached_.erase(&consumer) == 0) return;
  const Membership left = consumer.membership();
  consumer.set_membership({});
  left.member->abandon();
  if (in_turn_ || !left_.empty() || TurnWork::in_turn() > leave_work_max) {
    left_.push_back(left);
  } else {
    leave(left);
  }
}

void TopicConsumers::leave(const Membership& left) {
  ConsumerGroups& groups = topic_.groups();
  ConsumerGroup& group = *left.group;
  groups.detach(group, *left.member, EventLoop::Clock::now());
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
  if (GroupMember* const member = consumer.membership().member) member->wake();
  activity_.want_dispatch();
}

bool TopicConsumers::add_credit(SessionConsumer& consumer, const Credit& credit) {
  activity_.want_dispatch();
  GroupMember* const member = consumer.membership().member;
  return member == nullptr || member->add_credit(credit);
}

void TopicConsumers::end_in_pieces(SessionConsumer& consumer) {
  const GroupMember& member = *consumer.membership().member;
  count(limits_reached_, member.is_in_pieces() ? Limit::outstanding_ranges_max : Limit::group_ranges_total);
  const std::string why = member.is_in_pieces()
                              ? "more than " + std::to_string(member.pieces_max()) + " ranges of offsets"
                              : "more ranges of offsets than the broker keeps for a user, or for all users";
  condemn(consumer, ClientError::limit_reached, "the messages in flight form " + why);
}

bool TopicConsumers::has_in_flight(const SessionConsumer& consumer) {
  const GroupMember* const member = consumer.membership().member;
  return member != nullptr && !member->outstanding().empty();
}

void TopicConsumers::set_silent(SessionConsumer& consumer, bool silent) {
  GroupMember* const member = consumer.membership().member;
  if (member == nullptr) return;
  member->set_silent(silent);
  activity_.want_dispatch();
}

void TopicConsumers::tell_end(const SessionConsumer& consumer, RevokeCause cause) {
  const auto [group, member] = consumer.membership();
  if (group != nullptr) group->returns().tell_end(*member, cause);
}

bool TopicConsumers::shares_group_with_others(const SessionConsumer& consumer) {
  const auto [group, member] = consumer.membership();
  if (group == nullptr) return false;
  return group->standing().members_of(member->user()) != group->members() || group->plain_consumers() > 0;
}

Result<Offset> TopicConsumers::seek(SessionConsumer& consumer, const StartPosition& to) {
  ConsumerGroup* const group = consumer.membership().group;
  if (group == nullptr) return topic_.log().next_offset();
  activity_.want_dispatch();
  return topic_.groups().seek(*group, to);
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
    const Membership left = left_.front();
    left_.pop_front();
    leave(left);
  }
}

Topic::DispatchResult TopicConsumers::dispatch(const DeliveryContext& context) {
  Topic::DispatchResult result;
  bool some_wait = false;
  in_turn([&] {
    if (!condemned_.empty()) end_condemned();
    if (!waiting_.empty()) some_wait = admit();
    result = topic_.dispatch(context);
  });
  result.more |= some_wait || !left_.empty();
  if (result.held_back > 0) count(limits_reached_, Limit::group_state_bytes_max, result.held_back);
  return result;
}

void TopicConsumers::end_condemned() {
  while (!condemned_.empty()) {
    const Condemned condemned = std::move(condemned_.front());
    condemned_.pop_front();
    condemned.consumer->end(condemned.code, condemned.why);
  }
}

/// Admits the consumers that wait. Returns true if one still waits for the former consumer of its cursor. The
/// messages of that one are requeued first: otherwise the offsets of deliveries could descend.
bool TopicConsumers::admit() {
  const ConsumerGroups& groups = topic_.groups();
  std::vector<SessionConsumer*> admitted;
  bool some_wait = false;
  std::erase_if(waiting_, [&](SessionConsumer* consumer) {
    const ConsumerGroup& group = *consumer->membership().group;
    if (group.terms().mode == GroupMode::own && group.members() > 1) {
      some_wait = true;
      return false;
    }
    if (durable_ && !groups.is_saved(group)) return false;
    admitted.push_back(consumer);
    return true;
  });
  for (SessionConsumer* const consumer : admitted) {
    if (!attached_.contains(consumer)) continue;  // it was detached while another was admitted
    const auto [group, member] = consumer->membership();
    member->begin();
    consumer->admitted({upcoming(group->messages()), group->committed(), member->ack_timeout_ms()});
  }
  return some_wait;
}

void TopicConsumers::saved(const Result<void>& result) {
  if (result.ok()) return;
  const bool full = result.error().code == ErrorCode::no_space;
  const auto waiting = waiting_;
  for (SessionConsumer* const consumer : waiting) {
    if (topic_.groups().is_saved(*consumer->membership().group)) continue;
    condemn(*consumer, full ? ClientError::no_space : ClientError::io_error,
            full ? "the disk is full" : "the disk cannot be written");
  }
}

void TopicConsumers::end(ClientError code, const std::string& why) {
  in_turn([&] {
    end_condemned();
    while (!attached_.empty()) {
      SessionConsumer* const consumer = *attached_.begin();
      if (code == ClientError::shutting_down) ends_by(*consumer, MemberEnd::broker_stops);
      detach(*consumer);
      consumer->end(code, why);
    }
  });
}

}  // namespace lightq::broker
