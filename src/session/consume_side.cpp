/// Handles the frames of consumers. Layer: session.
#include "session/consume_side.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "session/frame_translation.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;

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
  auto asked = session_.decode<session::ConsumeOpen>(header, body);
  if (!asked) return;
  if (!asked->group.empty() && !TopicName::parse(asked->group))
    return session_.refuse_frame(header, nullptr, "consume_open: the group's name");
  if (session_.life().is_leaving()) return;
  SessionOutput& output = session_.output();
  ChannelBook& channels = session_.book();
  if (channels.is_full()) {
    tickets_.limit_reached(Limit::session_channels_max);
    return output.answer_error(header, Code::limit_reached, "too many channels are open");
  }
  const auto role = asked->mode == session::Mode::group ? EndpointRole::pull : EndpointRole::sub;
  std::uint64_t user = 0;
  const auto scope = scope_of(*asked);
  TopicRuntime* const topic = tickets_.permitted(asked->topic, role, scope, &user);
  if (topic == nullptr)
    return output.answer_error(header, Code::unauthorized_access, "no ticket of this session permits that");
  // The timeout is capped, not refused, because earlier clients ask for a day.
  asked->ack_timeout_ms =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(asked->ack_timeout_ms, topic->redelivery_ms_max()));
  auto channel = std::make_unique<ConsumeChannel>(*topic, role, scope, session_, tickets_, wanted_,
                                                  channels.take_number());
  const auto refusal = channel->open(request_of(*asked, output.client_knows_leases()), user);
  if (refusal.code == ClientError::limit_reached) tickets_.limit_reached(limit_of(refusal.crowd));
  if (refusal.code != ClientError::none)
    return output.answer_error(header, code_of(refusal.code), why_refused(refusal));
  channels.add(std::move(channel), header.request);
}

void ConsumeSide::on_read(const FrameHeader& header, ByteView body) {
  const auto asked = session_.decode<session::Read>(header, body);
  if (!asked || session_.life().is_leaving()) return;
  SessionOutput& output = session_.output();
  const auto no_group = GroupScope::of({});
  TopicRuntime* topic = tickets_.permitted(asked->topic, EndpointRole::pull, no_group);
  if (topic == nullptr) topic = tickets_.permitted(asked->topic, EndpointRole::sub, no_group);
  if (topic == nullptr)
    return output.answer_error(header, Code::unauthorized_access, "no ticket of this session permits that");
  if (reads_.is_full()) {
    tickets_.limit_reached(Limit::session_reads_max);
    return output.answer_error(header, Code::limit_reached, "too many reads wait for an answer");
  }
  reads_.add(*topic, *asked, header.request);
}

void ConsumeSide::go_on() {
  end_too_large();
  reads_.go_on();
  if (!wanted_.room || !session_.output().has_room()) return;
  wanted_.room = false;
  session_.book().for_each([](Channel& channel) {
    if (channel.kind() == Channel::Kind::consumes) static_cast<ConsumeChannel&>(channel).go_on();
  });
}

void ConsumeSide::close(std::uint32_t number) {
  if (ConsumeChannel* const channel = find(number)) channel->close();
}

bool ConsumeSide::any(bool (ConsumeChannel::*has)() const) const {
  bool any = false;
  session_.book().for_each([&](Channel& channel) {
    if (channel.kind() != Channel::Kind::consumes) return;
    any |= (static_cast<const ConsumeChannel&>(channel).*has)();
  });
  return any;
}

void ConsumeSide::set_silent(bool silent) {
  session_.book().for_each([&](Channel& channel) {
    if (channel.kind() != Channel::Kind::consumes) return;
    static_cast<ConsumeChannel&>(channel).set_silent(silent);
  });
}

void ConsumeSide::leave() {
  session_.book().for_each([](Channel& channel) {
    if (channel.kind() != Channel::Kind::consumes) return;
    auto& consumer = static_cast<ConsumeChannel&>(channel);
    consumer.close();
    // A channel that is still opening is answered first.
    if (consumer.is_admitted()) consumer.leave();
  });
}

void ConsumeSide::broker_stops() {
  session_.book().for_each([](Channel& channel) {
    if (channel.kind() == Channel::Kind::consumes)
      TopicConsumers::ends_by(static_cast<ConsumeChannel&>(channel), MemberEnd::broker_stops);
  });
}

void ConsumeSide::end_unpermitted() {
  std::vector<ConsumeChannel*> doomed;
  session_.book().for_each([&](Channel& each) {
    if (each.kind() != Channel::Kind::consumes) return;
    auto& channel = static_cast<ConsumeChannel&>(each);
    const TopicRuntime* const topic = channel.topic();
    if (topic == nullptr) return;
    if (tickets_.permitted(topic->definition().name.text(), channel.role(), channel.scope()) == topic) return;
    doomed.push_back(&channel);
  });
  for (ConsumeChannel* const channel : doomed) {
    TopicConsumers::tell_end(*channel, RevokeCause::rights);
    session_.end(*channel, Code::unauthorized_access, "the right to consume was withdrawn");
  }
  reads_.end_unpermitted();
}

bool ConsumeSide::has_turn() {
  return turns_ == nullptr || turns_->ask(waiter_, tickets_.first_user());
}

void ConsumeSide::spend(std::uint64_t bytes) {
  if (turns_ != nullptr) turns_->spend(bytes);
}

void ConsumeSide::end_too_large() {
  for (const std::uint32_t number : std::exchange(wanted_.too_large, {})) {
    if (ConsumeChannel* const channel = find(number))
      session_.end(*channel, Code::too_large, "a message is longer than the client accepts");
  }
}

ConsumeChannel* ConsumeSide::find(std::uint32_t number) const {
  Channel* const channel = session_.book().find(number);
  if (channel == nullptr || channel->kind() != Channel::Kind::consumes) return nullptr;
  return static_cast<ConsumeChannel*>(channel);
}

}  // namespace lightq::broker
