/// Reads and writes nsqd's frames. Layer: bench peers.
#include "peers/nsq/nsq_connection.hpp"

#include <arpa/inet.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "peers/peer.hpp"
#include "support/posix.hpp"

namespace lightq::bench {
namespace {

constexpr std::string_view protocol = "  V2";
constexpr std::string_view heartbeat = "_heartbeat_";
constexpr std::uint32_t response_type = 0;
constexpr std::uint32_t error_type = 1;
constexpr std::uint32_t message_type = 2;
// A message's frame: time and attempts, number, content.
constexpr std::size_t before_id_bytes = 10;
constexpr std::size_t id_bytes = 16;

[[noreturn]] void throw_answer(ByteView answer) {
  throw std::runtime_error("nsqd answers: " + std::string(as_text(answer)));
}

}  // namespace

NsqConnection::NsqConnection(std::uint16_t port, const NsqTerms& terms) : socket_(port) {
  const std::string wishes = nlohmann::json{
      {"heartbeat_interval", terms.heartbeat_ms},
      {"output_buffer_size", terms.output_buffer_bytes},
      {"output_buffer_timeout", terms.output_buffer_ms},
      {"msg_timeout",
       terms.message_timeout_ms}}.dump();
  put(std::string(protocol) + "IDENTIFY\n" + nsq_number(wishes.size()) + wishes);
  write_out();
  expect("OK");
}

std::uint32_t NsqConnection::number() {
  std::uint32_t ordered = 0;
  std::memcpy(&ordered, socket_.bytes(sizeof ordered).data(), sizeof ordered);
  return ntohl(ordered);
}

std::optional<NsqConnection::Frame> NsqConnection::next() {
  const std::size_t size = number();
  const std::uint32_t type = number();
  if (size < sizeof type) throw std::runtime_error("nsqd sends a frame without a type");
  const ByteView data = socket_.bytes(size - sizeof type);
  switch (type) {
    case response_type: break;
    case error_type: throw_answer(data);
    case message_type: return Frame{Kind::message, data};
    default: throw std::runtime_error("nsqd sends a frame of the unknown type " + std::to_string(type));
  }
  if (as_text(data) != heartbeat) return Frame{Kind::response, data};
  put("NOP\n");
  write_out();
  return std::nullopt;
}

void NsqConnection::expect(std::string_view response) {
  const Clock::time_point give_up = Clock::now() + peer_patience;
  while (Clock::now() < give_up) {
    const auto frame = next();
    if (!frame || frame->kind != Kind::response) continue;
    if (as_text(frame->data) == response) return;
    throw_answer(frame->data);
  }
  throw std::runtime_error("nsqd does not answer " + std::string(response) + " in time");
}

std::string nsq_number(std::size_t number) {
  const std::uint32_t ordered = htonl(static_cast<std::uint32_t>(number));
  std::string bytes(sizeof ordered, '\0');
  std::memcpy(bytes.data(), &ordered, sizeof ordered);
  return bytes;
}

NsqMessage parse_nsq_message(ByteView frame) {
  if (frame.size() < before_id_bytes + id_bytes) throw std::runtime_error("nsqd sends half a message");
  return {as_text(frame.subspan(before_id_bytes, id_bytes)), frame.subspan(before_id_bytes + id_bytes)};
}

}  // namespace lightq::bench
