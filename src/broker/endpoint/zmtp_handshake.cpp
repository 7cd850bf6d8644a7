/// Layer: endpoint.
#include "broker/endpoint/zmtp_handshake.hpp"

#include <algorithm>

#include "broker/endpoint/gate.hpp"

namespace lightq::broker {

using zmtp::Mechanism;

namespace {

constexpr std::size_t type_bytes_logged_max = 16;
// What libzmq takes for "not authorized" rather than for a broken connection (RFC 27/ZAP).
constexpr std::string_view refused = "400";

void append(std::vector<std::byte>& to, ByteView bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

/// At a gate the mechanism is not said before the peer's is known: so the same mechanism answers it where
/// either will do, and one that comes without a ticket is known as such (libzmq ends the connection by itself
/// at a mechanism that is not its own). Nobody waits in vain: signature and version are all that a peer may
/// wait for.
void ZmtpHandshake::begin(std::vector<std::byte>& output) const {
  const auto greeting = zmtp::greeting(Mechanism::null);
  append(output,
         ByteView(greeting).first(gate_ != nullptr ? zmtp::greeting_head_bytes : zmtp::greeting_bytes));
}

std::size_t ZmtpHandshake::take(ByteView bytes, std::vector<std::byte>& output) {
  std::size_t used = 0;
  while (!complete() && failure_.empty()) {
    const ByteView rest = bytes.subspan(used);
    const std::size_t step =
        state_ == State::greeting ? take_greeting(rest, output) : take_command(rest, output);
    if (step == 0) break;
    used += step;
  }
  return used;
}

std::size_t ZmtpHandshake::take_greeting(ByteView bytes, std::vector<std::byte>& output) {
  switch (zmtp::check_greeting(bytes)) {
    case zmtp::GreetingOutcome::incomplete: return 0;
    case zmtp::GreetingOutcome::not_zmtp: failure_ = "not a ZeroMQ peer"; return 0;
    case zmtp::GreetingOutcome::old_version: failure_ = "ZMTP older than 3.0 (libzmq before 4.0)"; return 0;
    case zmtp::GreetingOutcome::valid: break;
  }
  peer_speaks_3_1_ = zmtp::speaks_3_1(bytes);
  const auto theirs = zmtp::mechanism_of(bytes);
  const bool takes_plain = gate_ != nullptr;
  if (!theirs || (*theirs == Mechanism::plain && !takes_plain)) {
    failure_ = takes_plain ? "a security mechanism other than NULL and PLAIN"
                           : "a security mechanism other than NULL";
    return 0;
  }
  agree_on(*theirs, zmtp::is_server(bytes), output);
  return failure_.empty() ? zmtp::greeting_bytes : 0;
}

void ZmtpHandshake::agree_on(Mechanism theirs, bool peer_is_server, std::vector<std::byte>& output) {
  const bool plain = theirs == Mechanism::plain;
  const bool guarded = gate_ != nullptr && !gate_->is_open();
  if (gate_ != nullptr) {
    const auto greeting = zmtp::greeting(guarded ? Mechanism::plain : theirs, guarded || plain);
    append(output, ByteView(greeting).subspan(zmtp::greeting_head_bytes));
  }
  if (guarded && !plain) {
    unauthorized_ = true;
    failure_ = "no ticket (security mechanism NULL)";
    return;
  }
  if (plain && peer_is_server) {
    failure_ = "a PLAIN peer that takes itself for the server";
    return;
  }
  state_ = plain ? State::hello : State::ready;
  if (!plain) zmtp::append_ready(output, our_type_);
}

std::size_t ZmtpHandshake::take_command(ByteView bytes, std::vector<std::byte>& output) {
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
  const auto command = zmtp::parse_command(bytes.subspan(header.header_bytes, whole - header.header_bytes));
  judge(command.value_or(zmtp::Command{}), output);
  return failure_.empty() ? whole : 0;
}

void ZmtpHandshake::judge(const zmtp::Command& command, std::vector<std::byte>& output) {
  if (state_ == State::hello) return judge_hello(command, output);
  const std::string_view expected = state_ == State::initiate ? "INITIATE" : "READY";
  if (command.name != expected) {
    failure_ = "a handshake without " + std::string(expected);
    return;
  }
  if (!judge_socket_type(command, output)) return;
  if (state_ == State::initiate) zmtp::append_ready(output, our_type_);
  state_ = State::complete;
}

void ZmtpHandshake::judge_hello(const zmtp::Command& command, std::vector<std::byte>& output) {
  // libzmq 4.3.0 and 4.3.1 say WELCOME where they mean HELLO (their issue 3500).
  const bool is_hello = command.name == "HELLO" || command.name == "WELCOME";
  const auto shown = is_hello ? zmtp::credentials_of_hello(command.data) : std::nullopt;
  if (!shown) {
    failure_ = "a handshake without HELLO";
    return;
  }
  const std::string_view objection = gate_->objection(shown->username, shown->password);
  if (!objection.empty()) {
    zmtp::append_error(output, refused);
    unauthorized_ = true;
    failure_ = objection;
    return;
  }
  zmtp::append_command(output, "WELCOME", {});
  state_ = State::initiate;
}

bool ZmtpHandshake::judge_socket_type(const zmtp::Command& command, std::vector<std::byte>& output) {
  const auto type = zmtp::socket_type_of_ready(command.data);
  if (type && std::find(peer_types_.begin(), peer_types_.end(), *type) != peer_types_.end()) return true;
  zmtp::append_error(output, "Invalid socket type");
  failure_ = "a socket of type " + std::string(type.value_or("?")).substr(0, type_bytes_logged_max) +
             ", which does not go with " + std::string(our_type_);
  return false;
}

}  // namespace lightq::broker
