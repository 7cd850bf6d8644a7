/// Publishing and consuming over AMQP 0-9-1. Layer: bench peers.
#include "peers/rabbitmq/rabbitmq_clients.hpp"

#include <sys/time.h>

#include <algorithm>
#include <stdexcept>

namespace lightq::bench {
namespace {

constexpr std::uint64_t unconfirmed_max = 2'000;
constexpr std::uint64_t messages_per_poll = 64;
constexpr std::uint16_t prefetch_of_stream = 2'000;
constexpr std::uint16_t prefetch_of_worker = 1;
constexpr std::size_t messages_per_acknowledgement = 500;
constexpr std::uint8_t transient_mode = 1;
constexpr std::uint8_t persistent_mode = 2;

struct DestroyEnvelope {
  void operator()(amqp_envelope_t* envelope) const { amqp_destroy_envelope(envelope); }
};

}  // namespace

RabbitProducer::RabbitProducer(std::uint16_t port, std::string exchange, std::string key, bool persistent)
    : connection_(port), exchange_(std::move(exchange)), key_(std::move(key)) {
  properties_._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties_.delivery_mode = persistent ? persistent_mode : transient_mode;
  amqp_confirm_select(connection_.state(), RabbitConnection::channel);
  connection_.check_reply("asking for confirms");
}

void RabbitProducer::send(ByteView message) {
  const amqp_bytes_t body{message.size(), const_cast<std::byte*>(message.data())};
  RabbitConnection::check(
      amqp_basic_publish(connection_.state(), RabbitConnection::channel, amqp_bytes_of(exchange_),
                         amqp_bytes_of(key_), 0, 0, &properties_, body),
      "publishing");
  ++sent_;
  if (sent_ % messages_per_poll == 0) poll();
  while (sent_ - confirmed_ >= unconfirmed_max) {
    if (!read_confirm(peer_patience)) throw std::runtime_error("RabbitMQ sends no confirm in time");
  }
}

void RabbitProducer::poll() {
  while (confirmed_ < sent_ && read_confirm(std::chrono::milliseconds(0))) {
  }
  connection_.release();
}

void RabbitProducer::flush() {
  while (confirmed_ < sent_) {
    if (!read_confirm(peer_patience)) throw std::runtime_error("RabbitMQ sends no confirm in time");
  }
}

bool RabbitProducer::read_confirm(std::chrono::milliseconds wait) {
  const auto frame = connection_.frame(wait);
  if (!frame) return false;
  if (frame->frame_type != AMQP_FRAME_METHOD || frame->payload.method.id != AMQP_BASIC_ACK_METHOD)
    throw std::runtime_error("RabbitMQ sends something else than a confirm");
  const auto& found = *static_cast<const amqp_basic_ack_t*>(frame->payload.method.decoded);
  confirm(found.delivery_tag, found.multiple != 0);
  return true;
}

void RabbitProducer::confirm(std::uint64_t tag, bool multiple) {
  if (tag > sent_) throw std::runtime_error("RabbitMQ confirms a message that was not sent");
  if (multiple) {
    confirmed_ = std::max(confirmed_, tag);
  } else if (tag > confirmed_) {
    early_.insert(tag);
  }
  while (!early_.empty() && *early_.begin() <= confirmed_ + 1) {
    confirmed_ = std::max(confirmed_, *early_.begin());
    early_.erase(early_.begin());
  }
}

RabbitConsumer::RabbitConsumer(std::uint16_t port, const std::string& queue, bool single, bool from_first)
    : connection_(port), single_(single) {
  amqp_basic_qos(connection_.state(), RabbitConnection::channel, 0,
                 single ? prefetch_of_worker : prefetch_of_stream, 0);
  connection_.check_reply("prefetch");
  amqp_table_entry_t offset{};
  offset.key = amqp_cstring_bytes("x-stream-offset");
  offset.value.kind = AMQP_FIELD_KIND_UTF8;
  offset.value.value.bytes = amqp_cstring_bytes("first");
  const amqp_table_t arguments{from_first ? 1 : 0, &offset};
  amqp_basic_consume(connection_.state(), RabbitConnection::channel, amqp_bytes_of(queue), amqp_empty_bytes,
                     0, 0, 0, arguments);
  connection_.check_reply("consuming");
}

std::size_t RabbitConsumer::receive(std::chrono::milliseconds wait, const Take& take) {
  const std::size_t most = single_ ? 1 : messages_per_acknowledgement;
  std::size_t count = 0;
  std::uint64_t last_tag = 0;
  while (count < most && (count == 0 || connection_.has_input())) {
    // The rest of a message that has begun to arrive is not far.
    const std::chrono::milliseconds patience = count == 0 ? wait : peer_patience;
    const timeval time{static_cast<time_t>(patience.count() / 1000),
                       static_cast<suseconds_t>(patience.count() % 1000 * 1000)};
    connection_.release();
    amqp_envelope_t envelope;
    const amqp_rpc_reply_t reply = amqp_consume_message(connection_.state(), &envelope, &time, 0);
    if (count == 0 && reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
        reply.library_error == AMQP_STATUS_TIMEOUT)
      return 0;
    RabbitConnection::check(reply, "receiving");
    const std::unique_ptr<amqp_envelope_t, DestroyEnvelope> owned(&envelope);
    const amqp_bytes_t body = envelope.message.body;
    take({static_cast<const std::byte*>(body.bytes), body.len});
    last_tag = envelope.delivery_tag;
    ++count;
  }
  RabbitConnection::check(
      amqp_basic_ack(connection_.state(), RabbitConnection::channel, last_tag, single_ ? 0 : 1),
      "acknowledging");
  return count;
}

}  // namespace lightq::bench
