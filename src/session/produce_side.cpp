/// Handles the frames of producers. Layer: session.
#include "session/produce_side.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "admission/turn_work.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;

namespace {

const char* why_not_begun(Code refusal) {
  switch (refusal) {
    case Code::not_supported: return "a transient topic cannot confirm messages as flushed";
    case Code::unknown_producer: return "the broker does not know this producer id";
    case Code::limit_reached:
      return "the topic has the maximum of open producers, or its last places are reserved for other users";
    default: return "another producer has opened this producer id";
  }
}

}  // namespace

void ProduceSide::on_open(const FrameHeader& header, ByteView body) {
  const auto asked = port_.decode<session::ProduceOpen>(header, body);
  if (!asked) return;
  if (port_.leaving()) return;
  if (channels_.is_full())
    return port_.answer_limit(header, Limit::session_channels_max, "too many channels are open");
  ProduceChannel::Client client{
      .keeps_secrets = (port_.client_codecs().bits() & session::keeps_producer_secrets) != 0,
      .batch_bytes_max = port_.body_bytes_max()};
  TopicRuntime* const topic =
      port_.permitted(asked->topic, EndpointRole::produce, GroupScope::whole_topic(), &client.user);
  if (topic == nullptr)
    return port_.answer_error(header, Code::unauthorized_access, "no ticket of this session permits that");
  ProduceChannel::Link& link = *this;
  auto channel = std::make_unique<ProduceChannel>(*topic, link, channels_.take_number());
  const Code refusal = channel->open(*asked, client);
  if (refusal == Code::limit_reached) port_.limit_reached(Limit::producers_max);
  if (refusal != Code::ok) return port_.answer_error(header, refusal, why_not_begun(refusal));
  channels_.add(std::move(channel), header.request);
}

void ProduceSide::on_produce(const FrameHeader& header, std::span<std::byte> body) {
  Channel* const channel = port_.addressee(header, Channel::Kind::produces);
  if (channel == nullptr) return;
  touched_.add(header.channel);
  static_cast<ProduceChannel*>(channel)->produce(body, (header.flags & session::flag_flush) != 0);
}

void ProduceSide::on_too_large(const FrameHeader& header, ByteView batch_header) {
  Channel* const channel = port_.addressee(header, Channel::Kind::produces);
  if (channel != nullptr) static_cast<ProduceChannel*>(channel)->refuse_too_large(batch_header);
}

std::span<std::byte> ProduceSide::place_for(const FrameHeader& header) {
  Channel* const channel = channels_.find_open(header.channel);
  if (channel == nullptr || channel->kind() != Channel::Kind::produces) return {};
  return static_cast<ProduceChannel*>(channel)->place_for_next(header.body_bytes);
}

void ProduceSide::after_input() {
  TopicRuntime* last = nullptr;
  touched_.take_each([&](std::uint32_t number) {
    ProduceChannel* const channel = find(number);
    if (channel == nullptr || channel->topic() == nullptr || channel->topic() == last) return;
    last = channel->topic();
    last->dispatch().published();
  });
}

void ProduceSide::send_confirms() {
  due_.take_each([&](std::uint32_t number) {
    if (ProduceChannel* const channel = find(number)) port_.send(channel->take_confirm(), number, 0);
  });
}

void ProduceSide::end_unpermitted() {
  std::vector<ProduceChannel*> doomed;
  channels_.for_each([&](Channel& each) {
    if (each.kind() != Channel::Kind::produces) return;
    auto& channel = static_cast<ProduceChannel&>(each);
    const TopicRuntime* const topic = channel.topic();
    if (topic == nullptr || port_.permitted(topic->definition().name.text(), EndpointRole::produce,
                                            GroupScope::whole_topic()) == topic)
      return;
    doomed.push_back(&channel);
  });
  for (ProduceChannel* const channel : doomed)
    port_.end_channel(*channel, Code::unauthorized_access, "the right to produce was revoked");
}

/// Returns the channel. Requires: the number is that of a producer's channel, or of none.
ProduceChannel* ProduceSide::find(std::uint32_t number) const {
  return static_cast<ProduceChannel*>(channels_.find(number));
}

void ProduceSide::channel_opened(ProduceChannel& channel, const session::ProduceOpened& answer) {
  if (port_.ending()) return;
  port_.send(answer, channel.number(), channels_.take_opening(channel.number()));
  port_.work_soon();
}

void ProduceSide::confirm_due(ProduceChannel& channel) {
  due_.add(channel.number());
  port_.work_soon();
}

void ProduceSide::refuse(ProduceChannel& channel, const session::Refuse& refused) {
  TurnWork::add(TurnWork::refusal_made);
  port_.send(refused, channel.number(), 0);
}

void ProduceSide::channel_held(ProduceChannel& /*channel*/) {
  if (port_.ending()) return;
  channels_.count_held();
  port_.pause_reading();
}

void ProduceSide::channel_resumed(ProduceChannel& /*channel*/) {
  if (port_.ending()) return;
  channels_.count_resumed();
  port_.work_soon();
}

void ProduceSide::channel_ended(ProduceChannel& channel, Code code, const std::string& why) {
  port_.end_channel(channel, code, why);
}

}  // namespace lightq::broker
