/// Encodes messages for PULL and SUB sockets, and tracks subscriptions. Layer: plain.
#include "plain/zmtp_consumer_connection.hpp"

#include <cstring>
#include <span>
#include <utility>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

void encode_frame(OutputBuffer& output, ByteView payload) {
  const std::size_t header_bytes = zmtp::frame_header_bytes(payload.size());
  std::byte* const to = output.extend(header_bytes + payload.size());
  zmtp::encode_frame_header(to, payload.size(), false);
  if (!payload.empty()) std::memcpy(to + header_bytes, payload.data(), payload.size());
}

}  // namespace

std::size_t ZmtpConsumerConnection::consume(std::span<std::byte> bytes) {
  std::size_t at = 0;
  while (!life().failed() && !input().turn_share().is_used_up()) {
    zmtp::FrameHeader header;
    const auto outcome = zmtp::parse_frame_header(bytes.subspan(at), header);
    if (outcome == zmtp::FrameOutcome::incomplete) break;
    if (outcome == zmtp::FrameOutcome::invalid || header.body_bytes > zmtp::command_bytes_max) {
      life().fail("a malformed frame");
      break;
    }
    const std::size_t whole = header.header_bytes + static_cast<std::size_t>(header.body_bytes);
    if (bytes.size() - at < whole) break;
    const ByteView body = bytes.subspan(at + header.header_bytes, whole - header.header_bytes);
    at += whole;
    if (header.command) {
      handle_command(body);
    } else {
      on_message(body);
    }
    TurnWork::add(header.command ? TurnWork::command_taken : TurnWork::frame_taken);
    static_cast<void>(input().turn_share().use_up());
  }
  if (!life().failed()) after_input();
  return at;
}

void PullConsumerConnection::encode(ByteView payload) {
  encode_frame(output(), payload);
}

SubConsumerConnection::SubConsumerConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner,
                                             std::vector<std::byte>& scratch, PlainConsumerHost& host,
                                             const TopicName& topic)
    : ZmtpConsumerConnection(loop, std::move(descriptor), owner, scratch, host),
      topic_(topic.text()),
      topic_frame_(zmtp::frame_header_bytes_max + topic_.size()) {
  const std::size_t header_bytes = zmtp::encode_frame_header(topic_frame_.data(), topic_.size(), true);
  std::memcpy(topic_frame_.data() + header_bytes, topic_.data(), topic_.size());
  topic_frame_.resize(header_bytes + topic_.size());
}

void SubConsumerConnection::encode(ByteView payload) {
  std::memcpy(output().extend(topic_frame_.size()), topic_frame_.data(), topic_frame_.size());
  encode_frame(output(), payload);
}

void SubConsumerConnection::on_message(ByteView payload) {
  // Ignores other messages: XSUB sockets may send messages upstream.
  if (const auto changed = zmtp::subscription_of_message(payload)) change(*changed);
}

void SubConsumerConnection::on_command(const zmtp::Command& command) {
  if (const auto changed = zmtp::subscription_of_command(command)) change(*changed);
}

void SubConsumerConnection::change(const zmtp::SubscriptionChange& change) {
  if (!topic_.starts_with(change.prefix)) return;
  if (change.subscribe) {
    ++subscriptions_[change.prefix.size()];
  } else if (const auto found = subscriptions_.find(change.prefix.size()); found != subscriptions_.end()) {
    if (--found->second == 0) subscriptions_.erase(found);
  }
}

void SubConsumerConnection::after_input() {
  set_ready(!subscriptions_.empty());
}

}  // namespace lightq::broker
