/// Handles the frames of producers. Layer: session.
#include "session/produce_side.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "admission/turn_work.hpp"
#include "session/frame_translation.hpp"

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

/// Returns the part of the topic that stores the messages. Errors: those of TopicSchedule::target.
Result<ProduceTarget*> target_of(TopicRuntime& topic, session::ProduceTarget asked) {
  if (asked == session::ProduceTarget::schedule) return topic.schedule().target();
  return &topic.publishing();
}

}  // namespace

void ProduceSide::on_open(const FrameHeader& header, ByteView body, std::uint64_t batch_bytes_max) {
  const auto asked = session_.decode<session::ProduceOpen>(header, body);
  if (!asked || session_.life().is_leaving()) return;
  SessionOutput& output = session_.output();
  ChannelBook& channels = session_.book();
  if (channels.is_full()) {
    tickets_.limit_reached(Limit::session_channels_max);
    return output.answer_error(header, Code::limit_reached, "too many channels are open");
  }
  ProduceChannel::Client client{.keeps_secrets = output.client_keeps_secrets(),
                                .batch_bytes_max = batch_bytes_max};
  TopicRuntime* const topic =
      tickets_.permitted(asked->topic, EndpointRole::produce, GroupScope::whole_topic(), &client.user);
  if (topic == nullptr)
    return output.answer_error(header, Code::unauthorized_access, "no ticket of this session permits that");
  const Result<ProduceTarget*> target = target_of(*topic, asked->target);
  if (!target) return output.answer_error(header, code_of(target.error().code), target.error().message);
  auto channel = std::make_unique<ProduceChannel>(*topic, **target, session_, due_, channels.take_number());
  const Code refusal = channel->open(*asked, client);
  if (refusal == Code::limit_reached) tickets_.limit_reached(Limit::producers_max);
  if (refusal != Code::ok) return output.answer_error(header, refusal, why_not_begun(refusal));
  channels.add(std::move(channel), header.request);
}

void ProduceSide::on_produce(const FrameHeader& header, std::span<std::byte> body) {
  Channel* const channel = session_.addressee(header, Channel::Kind::produces);
  if (channel == nullptr) return;
  touched_.add(header.channel);
  static_cast<ProduceChannel*>(channel)->produce(body, (header.flags & session::flag_flush) != 0);
}

void ProduceSide::on_too_large(const FrameHeader& header, ByteView batch_header) {
  Channel* const channel = session_.addressee(header, Channel::Kind::produces);
  if (channel != nullptr) static_cast<ProduceChannel*>(channel)->refuse_too_large(batch_header);
}

std::span<std::byte> ProduceSide::place_for(const FrameHeader& header) {
  Channel* const channel = session_.book().find_open(header.channel);
  if (channel == nullptr || channel->kind() != Channel::Kind::produces) return {};
  return static_cast<ProduceChannel*>(channel)->place_for_next(header.body_bytes);
}

void ProduceSide::after_input() {
  ProduceTarget* last = nullptr;
  touched_.take_each([&](std::uint32_t number) {
    ProduceChannel* const channel = find(number);
    if (channel == nullptr || channel->target() == nullptr || channel->target() == last) return;
    last = channel->target();
    last->published();
  });
  send_confirms();
}

void ProduceSide::send_confirms() {
  SessionOutput& output = session_.output();
  if (!output.may_confirm()) return;
  due_.take_each([&](std::uint32_t number) {
    ProduceChannel* const channel = find(number);
    if (channel == nullptr) return;
    do {
      output.send(channel->take_confirm(), number, 0);
    } while (channel->has_more_confirms() && output.may_confirm());
    if (channel->has_more_confirms()) due_.add(number);
  });
}

void ProduceSide::end_unpermitted() {
  std::vector<ProduceChannel*> doomed;
  session_.book().for_each([&](Channel& each) {
    if (each.kind() != Channel::Kind::produces) return;
    auto& channel = static_cast<ProduceChannel&>(each);
    const TopicRuntime* const topic = channel.topic();
    if (topic == nullptr || tickets_.permitted(topic->definition().name.text(), EndpointRole::produce,
                                               GroupScope::whole_topic()) == topic)
      return;
    doomed.push_back(&channel);
  });
  for (ProduceChannel* const channel : doomed)
    session_.end(*channel, Code::unauthorized_access, "the right to produce was withdrawn");
}

/// Returns the channel. Requires: the number is that of a producer's channel, or of none.
ProduceChannel* ProduceSide::find(std::uint32_t number) const {
  return static_cast<ProduceChannel*>(session_.book().find(number));
}

}  // namespace lightq::broker
