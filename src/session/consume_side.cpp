/// Handles the frames of consumers. Layer: session.
#include "session/consume_side.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "session/frame_translation.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;
using session::Op;

namespace {

Limit limit_of(ConsumerGroups::Crowd crowd) {
  switch (crowd) {
    case ConsumerGroups::Crowd::members_of_group: return Limit::members_per_group_max;
    case ConsumerGroups::Crowd::members_of_all: return Limit::group_members_total;
    case ConsumerGroups::Crowd::groups: break;
  }
  return Limit::groups_per_topic_max;
}

const char* why_refused(const TopicConsumers::Refusal& refusal) {
  if (refusal.crowd == ConsumerGroups::Crowd::members_of_group)
    return "the group has the maximum of members, or its last places are reserved for other users";
  if (refusal.crowd == ConsumerGroups::Crowd::members_of_all)
    return "the broker has the maximum of consumers, or its last places are reserved for other users";
  switch (refusal.code) {
    case ClientError::not_supported: return "the topic has a group of this name in the other mode";
    case ClientError::limit_reached:
      return "the topic has the maximum of groups and cursors, or its last places are reserved for other "
             "users";
    case ClientError::unauthorized_access: return "the cursor belongs to another user";
    case ClientError::incarnation_changed: return "the offset belongs to another incarnation of the log";
    case ClientError::no_space: return "the disk is full";
    case ClientError::io_error: return "the position is among messages that cannot be read now";
    case ClientError::shutting_down: return "the broker is stopping";
    default: return "the topic refuses the consumer";
  }
}

GroupScope scope_of(const session::ConsumeOpen& asked) {
  const bool plain = asked.mode == session::Mode::group && asked.group.empty();
  return GroupScope::of(plain ? protocol::default_group : std::string_view(asked.group));
}

}  // namespace

void ConsumeSide::on_open(const FrameHeader& header, ByteView body) {
  auto asked = port_.decode<session::ConsumeOpen>(header, body);
  if (!asked) return;
  if (!asked->group.empty() && !TopicName::parse(asked->group))
    return port_.refuse_frame(header, nullptr, "consume_open: the group's name");
  if (port_.leaving()) return;
  if (channels_.is_full())
    return port_.answer_limit(header, Limit::session_channels_max, "too many channels are open");
  const auto role = asked->mode == session::Mode::group ? EndpointRole::pull : EndpointRole::sub;
  std::uint64_t user = 0;
  const auto scope = scope_of(*asked);
  TopicRuntime* const topic = port_.permitted(asked->topic, role, scope, &user);
  if (topic == nullptr)
    return port_.answer_error(header, Code::unauthorized_access, "no ticket of this session permits that");
  // The timeout is capped, not refused, because earlier clients ask for a day.
  asked->ack_timeout_ms =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(asked->ack_timeout_ms, topic->redelivery_ms_max()));
  ConsumeChannel::Link& link = *this;
  auto channel = std::make_unique<ConsumeChannel>(*topic, role, scope, port_, link, channels_.take_number());
  const auto refusal = channel->open(request_of(*asked), user);
  if (refusal.code == ClientError::limit_reached) port_.limit_reached(limit_of(refusal.crowd));
  if (refusal.code != ClientError::none)
    return port_.answer_error(header, code_of(refusal.code), why_refused(refusal));
  channels_.add(std::move(channel), header.request);
}

void ConsumeSide::on_read(const FrameHeader& header, ByteView body) {
  const auto asked = port_.decode<session::Read>(header, body);
  if (!asked) return;
  if (port_.leaving()) return;
  const auto no_group = GroupScope::of({});
  TopicRuntime* topic = port_.permitted(asked->topic, EndpointRole::pull, no_group);
  if (topic == nullptr) topic = port_.permitted(asked->topic, EndpointRole::sub, no_group);
  if (topic == nullptr)
    return port_.answer_error(header, Code::unauthorized_access, "no ticket of this session permits that");
  if (reads_.is_full())
    return port_.answer_limit(header, Limit::session_reads_max, "too many reads wait for an answer");
  reads_.add(*topic, *asked, header.request);
}

void ConsumeSide::on_channel_frame(const FrameHeader& header, ByteView body) {
  Channel* const addressee = port_.addressee(header, Channel::Kind::consumes);
  if (addressee == nullptr) return;
  auto& channel = *static_cast<ConsumeChannel*>(addressee);
  if (channel.topic() == nullptr) return;
  switch (header.op) {
    case Op::credit: return on_credit(channel, header, body);
    case Op::acknowledge: return on_acknowledge(channel, header, body);
    case Op::reject: return on_reject(channel, header, body);
    case Op::extend: return on_extend(channel, header, body);
    default: return on_seek(channel, header, body);
  }
}

void ConsumeSide::on_credit(ConsumeChannel& channel, const FrameHeader& header, ByteView body) {
  const auto credit = port_.decode<session::Credit>(header, body, &channel);
  if (!credit || channel.topic()->consumers().add_credit(channel, credit_of(*credit))) return;
  port_.limit_reached(Limit::in_flight_messages_max);
  port_.end_channel(channel, Code::limit_reached, "credit of more than 2^31 messages or 2^62 bytes");
}

void ConsumeSide::on_acknowledge(ConsumeChannel& channel, const FrameHeader& header, ByteView body) {
  if (auto done = port_.decode<session::Acknowledge>(header, body, &channel))
    channel.topic()->consumers().acknowledge(channel, ack_of(std::move(*done)));
}

void ConsumeSide::on_reject(ConsumeChannel& channel, const FrameHeader& header, ByteView body) {
  auto rejected = port_.decode<session::Reject>(header, body, &channel);
  if (!rejected) return;
  if ((header.flags & session::flag_dead_letter) != 0)
    return port_.end_channel(channel, Code::not_supported, "this version does not support dead letters");
  if (keeps_too_long(channel, rejected->ms)) return;
  channel.topic()->consumers().reject(channel, rejection_of(std::move(*rejected)), EventLoop::Clock::now());
}

void ConsumeSide::on_extend(ConsumeChannel& channel, const FrameHeader& header, ByteView body) {
  auto extended = port_.decode<session::Extend>(header, body, &channel);
  if (!extended || keeps_too_long(channel, extended->ms)) return;
  channel.topic()->consumers().extend(channel, extension_of(std::move(*extended)), EventLoop::Clock::now());
}

/// Ends the channel if the delay is longer than redelivery_ms_max. So no consumer can keep a message from its
/// group for good.
bool ConsumeSide::keeps_too_long(ConsumeChannel& channel, std::uint64_t ms) {
  const std::uint64_t most = channel.topic()->redelivery_ms_max();
  if (ms <= most) return false;
  port_.end_channel(channel, Code::limit_reached,
                    std::to_string(ms) + " ms is longer than redelivery_ms_max, " + std::to_string(most));
  return true;
}

void ConsumeSide::on_seek(ConsumeChannel& channel, const FrameHeader& header, ByteView body) {
  const auto seek = port_.decode<session::Seek>(header, body);
  if (!seek) return;
  TopicRuntime& topic = *channel.topic();
  if (topic.consumers().shares_group_with_others(channel) && !port_.may_manage(topic, channel.scope()))
    return port_.answer_error(header, Code::unauthorized_access,
                              "other consumers use this group, so a seek needs the right to manage it");
  const auto next = topic.consumers().seek(channel, position_of(seek->to));
  if (!next)
    return port_.answer_error(header, Code::io_error,
                              "the position is among messages that cannot be read now");
  port_.send(session::Done{next->value}, header.channel, header.request);
}

void ConsumeSide::go_on() {
  end_too_large();
  reads_.go_on();
  if (!room_wanted_ || !port_.has_room()) return;
  room_wanted_ = false;
  channels_.for_each([](Channel& channel) {
    if (channel.kind() == Channel::Kind::consumes) static_cast<ConsumeChannel&>(channel).go_on();
  });
}

void ConsumeSide::retire(std::uint32_t number) {
  if (ConsumeChannel* const channel = find(number)) channel->retire();
}

bool ConsumeSide::has_in_flight() const {
  bool any = false;
  channels_.for_each([&](Channel& channel) {
    if (channel.kind() != Channel::Kind::consumes) return;
    auto& consumer = static_cast<ConsumeChannel&>(channel);
    any |= consumer.topic() != nullptr && consumer.topic()->consumers().has_in_flight(consumer);
  });
  return any;
}

void ConsumeSide::leave() {
  channels_.for_each([](Channel& channel) {
    if (channel.kind() != Channel::Kind::consumes) return;
    auto& consumer = static_cast<ConsumeChannel&>(channel);
    consumer.retire();
    // A channel that is still opening is answered first.
    if (consumer.is_admitted()) consumer.leave();
  });
}

void ConsumeSide::end_unpermitted() {
  std::vector<ConsumeChannel*> doomed;
  channels_.for_each([&](Channel& each) {
    if (each.kind() != Channel::Kind::consumes) return;
    auto& channel = static_cast<ConsumeChannel&>(each);
    const TopicRuntime* const topic = channel.topic();
    if (topic == nullptr) return;
    if (port_.permitted(topic->definition().name.text(), channel.role(), channel.scope()) == topic) return;
    doomed.push_back(&channel);
  });
  for (ConsumeChannel* const channel : doomed)
    port_.end_channel(*channel, Code::unauthorized_access, "the right to consume was revoked");
  reads_.end_unpermitted();
}

void ConsumeSide::channel_opened(ConsumeChannel& channel, const session::ConsumeOpened& answer) {
  if (port_.ending()) return;
  port_.send(answer, channel.number(), channels_.take_opening(channel.number()));
  port_.work_soon();
}

void ConsumeSide::message_too_large(ConsumeChannel& channel) {
  too_large_.push_back(channel.number());
  port_.work_soon();
}

void ConsumeSide::end_too_large() {
  for (const std::uint32_t number : std::exchange(too_large_, {})) {
    if (ConsumeChannel* const channel = find(number))
      port_.end_channel(*channel, Code::too_large, "a message is longer than the client accepts");
  }
}

ConsumeChannel* ConsumeSide::find(std::uint32_t number) const {
  Channel* const channel = channels_.find(number);
  if (channel == nullptr || channel->kind() != Channel::Kind::consumes) return nullptr;
  return static_cast<ConsumeChannel*>(channel);
}

}  // namespace lightq::broker
