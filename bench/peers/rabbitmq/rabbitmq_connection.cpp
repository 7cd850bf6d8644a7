/// Connects to RabbitMQ. Layer: bench peers.
#include "peers/rabbitmq/rabbitmq_connection.hpp"

#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include <stdexcept>

namespace lightq::bench {
namespace {

constexpr int frame_bytes_max = 131'072;
constexpr int no_heartbeat = 0;

timeval time_of(std::chrono::milliseconds time) {
  return {static_cast<time_t>(time.count() / 1000), static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

std::string text_of(const amqp_rpc_reply_t& reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) return amqp_error_string2(reply.library_error);
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION) return "no reply";
  amqp_bytes_t text = amqp_empty_bytes;
  if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD)
    text = static_cast<const amqp_channel_close_t*>(reply.reply.decoded)->reply_text;
  if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD)
    text = static_cast<const amqp_connection_close_t*>(reply.reply.decoded)->reply_text;
  return {static_cast<const char*>(text.bytes), text.len};
}

}  // namespace

amqp_bytes_t amqp_bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}

void RabbitConnection::check(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  throw std::runtime_error("RabbitMQ, " + std::string(what) + ": " + text_of(reply));
}

void RabbitConnection::check(int status, const char* what) {
  if (status == AMQP_STATUS_OK) return;
  throw std::runtime_error("RabbitMQ, " + std::string(what) + ": " + amqp_error_string2(status));
}

void RabbitConnection::check_reply(const char* what) const {
  check(amqp_get_rpc_reply(state()), what);
}

RabbitConnection::RabbitConnection(std::uint16_t port) : state_(amqp_new_connection()) {
  amqp_socket_t* const socket = amqp_tcp_socket_new(state());
  if (socket == nullptr) throw std::runtime_error("librabbitmq has no memory");
  const timeval patience = time_of(peer_patience);
  check(amqp_socket_open_noblock(socket, "127.0.0.1", port, &patience), "connecting");
  check(amqp_set_handshake_timeout(state(), &patience), "time limit");
  check(amqp_set_rpc_timeout(state(), &patience), "time limit");
  check(amqp_login(state(), "/", 0, frame_bytes_max, no_heartbeat, AMQP_SASL_METHOD_PLAIN, "guest", "guest"),
        "login");
  amqp_channel_open(state(), channel);
  check_reply("opening a channel");
}

std::optional<amqp_frame_t> RabbitConnection::frame(std::chrono::milliseconds wait) {
  const timeval time = time_of(wait);
  amqp_frame_t found;
  const int status = amqp_simple_wait_frame_noblock(state(), &found, &time);
  if (status == AMQP_STATUS_TIMEOUT) return std::nullopt;
  check(status, "receiving");
  return found;
}

void RabbitConnection::close_channel() {
  check(amqp_channel_close(state(), channel, AMQP_REPLY_SUCCESS), "closing the channel");
}

}  // namespace lightq::bench
