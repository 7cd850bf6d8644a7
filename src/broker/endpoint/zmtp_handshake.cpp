/// Layer: endpoint.
#include "broker/endpoint/zmtp_handshake.hpp"

#include <algorithm>

namespace lightq::broker {

namespace {
constexpr std::size_t type_bytes_logged_max = 16;
}

void ZmtpHandshake::greet(std::vector<std::byte>& output) {
  const auto greeting = zmtp::greeting();
  output.insert(output.end(), greeting.begin(), greeting.end());
}

std::size_t ZmtpHandshake::take(ByteView bytes, std::vector<std::byte>& output) {
  std::size_t used = 0;
  if (state_ == State::greeting) used = take_greeting(bytes, output);
  if (state_ == State::ready) used += take_ready(bytes.subspan(used), output);
  return used;
}

std::size_t ZmtpHandshake::take_greeting(ByteView bytes, std::vector<std::byte>& output) {
  switch (zmtp::check_greeting(bytes)) {
    case zmtp::GreetingOutcome::incomplete: return 0;
    case zmtp::GreetingOutcome::not_zmtp: failure_ = "not a ZeroMQ peer"; return 0;
    case zmtp::GreetingOutcome::old_version: failure_ = "ZMTP older than 3.0 (libzmq before 4.0)"; return 0;
    case zmtp::GreetingOutcome::other_mechanism: failure_ = "a security mechanism other than NULL"; return 0;
    case zmtp::GreetingOutcome::valid: break;
  }
  peer_speaks_3_1_ = zmtp::speaks_3_1(bytes);
  state_ = State::ready;
  zmtp::append_ready(output, our_type_);
  return zmtp::greeting_bytes;
}

std::size_t ZmtpHandshake::take_ready(ByteView bytes, std::vector<std::byte>& output) {
  zmtp::FrameHeader header;
  const auto outcome = zmtp::parse_frame_header(bytes, header);
  if (outcome == zmtp::FrameOutcome::incomplete) return 0;
  if (outcome == zmtp::FrameOutcome::invalid || !header.command ||
      header.body_bytes > zmtp::command_bytes_max) {
    failure_ = "a handshake that is not ZMTP";
    return 0;
  }
  const std::size_t whole = header.header_bytes + static_cast<std::size_t>(header.body_bytes);
  if (bytes.size() < whole) return 0;
  if (!judge_ready(bytes.subspan(header.header_bytes, whole - header.header_bytes), output)) return 0;
  state_ = State::complete;
  return whole;
}

bool ZmtpHandshake::judge_ready(ByteView body, std::vector<std::byte>& output) {
  const auto command = zmtp::parse_command(body);
  if (!command || command->name != "READY") {
    failure_ = "a handshake without READY";
    return false;
  }
  const auto type = zmtp::socket_type_of_ready(command->data);
  if (type && std::find(peer_types_.begin(), peer_types_.end(), *type) != peer_types_.end()) return true;
  zmtp::append_error(output, "Invalid socket type");
  failure_ = "a socket of type " + std::string(type.value_or("?")).substr(0, type_bytes_logged_max) +
             ", which does not go with " + std::string(our_type_);
  return false;
}

}  // namespace lightq::broker
