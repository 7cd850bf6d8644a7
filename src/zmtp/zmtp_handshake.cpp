/// Negotiates the security mechanism with a ZeroMQ peer and checks its commands. Layer: zmtp.
#include "zmtp/zmtp_handshake.hpp"

#include <algorithm>

#include "access/connection_authorizer.hpp"

namespace lightq::broker {

using zmtp::Mechanism;

namespace {

constexpr std::size_t type_bytes_logged_max = 16;
// The status that libzmq reports as "not authorized" and not as a broken connection (RFC 27/ZAP).
constexpr std::string_view not_authorized = "400";

void append(std::vector<std::byte>& to, ByteView bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

/// With a authorizer, sends only the signature and version, and the mechanism after the peer's is known. So
/// an open authorizer can answer NULL and PLAIN with the same mechanism. And a peer without a ticket can be
/// recognised and counted; libzmq ends the connection itself when the other side names another mechanism. No
/// peer waits in vain, because a peer may wait only for signature and version.
void ZmtpHandshake::begin(std::vector<std::byte>& output) const {
  const auto greeting = zmtp::greeting(Mechanism::null);
  append(output,
         ByteView(greeting).first(authorizer_ != nullptr ? zmtp::greeting_head_bytes : zmtp::greeting_bytes));
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
    case zmtp::GreetingOutcome::not_zmtp:
      is_nonsense_ = true;
      failure_ = "not a ZeroMQ peer";
      return 0;
    case zmtp::GreetingOutcome::old_version: failure_ = "ZMTP older than 3.0 (libzmq before 4.0)"; return 0;
    case zmtp::GreetingOutcome::valid: break;
  }
  peer_speaks_3_1_ = zmtp::speaks_3_1(bytes);
  const auto theirs = zmtp::mechanism_of(bytes);
  const bool is_encrypted = authorizer_ != nullptr && authorizer_->curve() != nullptr;
  const bool takes_plain = authorizer_ != nullptr;
  const bool foreign = theirs == Mechanism::curve || (theirs == Mechanism::plain && !takes_plain);
  if (!is_encrypted && (!theirs || foreign)) {
    failure_ = takes_plain ? "a security mechanism other than NULL and PLAIN"
                           : "a security mechanism other than NULL";
    return 0;
  }
  if (is_encrypted) {
    agree_on_curve(theirs, zmtp::is_server(bytes), output);
  } else {
    agree_on(*theirs, zmtp::is_server(bytes), output);
  }
  return failure_.empty() ? zmtp::greeting_bytes : 0;
}

/// Accepts only the mechanism CURVE. A peer with another mechanism still receives this side's greeting, so
/// that libzmq can tell its user about the mismatch.
void ZmtpHandshake::agree_on_curve(std::optional<Mechanism> theirs, bool peer_is_server,
                                   std::vector<std::byte>& output) {
  const auto greeting = zmtp::greeting(Mechanism::curve, true);
  append(output, ByteView(greeting).subspan(zmtp::greeting_head_bytes));
  if (theirs != Mechanism::curve) {
    unauthorized_ = true;
    failure_ = "not encrypted (a security mechanism other than CURVE)";
  } else if (peer_is_server) {
    failure_ = "a CURVE peer in the role of a server";
  } else {
    curve_ = std::make_unique<CurveServer>(*authorizer_->curve());
    state_ = State::curve_hello;
  }
}

void ZmtpHandshake::agree_on(Mechanism theirs, bool peer_is_server, std::vector<std::byte>& output) {
  const bool plain = theirs == Mechanism::plain;
  const bool guarded = authorizer_ != nullptr && !authorizer_->is_open();
  if (authorizer_ != nullptr) {
    const auto greeting = zmtp::greeting(guarded ? Mechanism::plain : theirs, guarded || plain);
    append(output, ByteView(greeting).subspan(zmtp::greeting_head_bytes));
  }
  if (guarded && !plain) {
    unauthorized_ = true;
    failure_ = "no ticket (security mechanism NULL)";
    return;
  }
  if (plain && peer_is_server) {
    failure_ = "a PLAIN peer in the role of a server";
    return;
  }
  state_ = plain ? State::hello : State::ready;
  if (plain) return;
  // Checked before READY is sent: after READY the peer takes its messages for sent.
  if (authorizer_ != nullptr) failure_ = authorizer_->objection_to_anonymous(holder_);
  if (failure_.empty()) zmtp::append_ready(output, our_type_);
}

std::size_t ZmtpHandshake::missing(ByteView left) const {
  if (state_ == State::greeting) return zmtp::missing_of_greeting(left);
  zmtp::FrameHeader header;
  if (zmtp::parse_frame_header(left, header) != zmtp::FrameOutcome::complete) return 1;
  const std::uint64_t whole = header.header_bytes + header.body_bytes;
  return whole > left.size() ? static_cast<std::size_t>(whole - left.size()) : 1;
}

std::size_t ZmtpHandshake::take_command(ByteView bytes, std::vector<std::byte>& output) {
  zmtp::FrameHeader header;
  const auto outcome = zmtp::parse_frame_header(bytes, header);
  if (outcome == zmtp::FrameOutcome::incomplete) return 0;
  if (outcome == zmtp::FrameOutcome::invalid || !header.command ||
      header.body_bytes > zmtp::command_bytes_max) {
    failure_ = "an invalid ZMTP handshake";
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
  if (state_ == State::curve_hello) return judge_curve_hello(command, output);
  if (state_ == State::curve_initiate) return judge_curve_initiate(command, output);
  const std::string_view expected = state_ == State::initiate ? "INITIATE" : "READY";
  if (command.name != expected) {
    failure_ = "a handshake without " + std::string(expected);
    return;
  }
  if (!judge_socket_type(command.data, output)) return;
  if (state_ == State::initiate) zmtp::append_ready(output, our_type_);
  state_ = State::complete;
}

void ZmtpHandshake::judge_hello(const zmtp::Command& command, std::vector<std::byte>& output) {
  // libzmq 4.3.0 and 4.3.1 send WELCOME in place of HELLO (their issue 3500).
  const bool is_hello = command.name == "HELLO" || command.name == "WELCOME";
  const auto shown = is_hello ? zmtp::credentials_of_hello(command.data) : std::nullopt;
  if (!shown) {
    failure_ = "a handshake without HELLO";
    return;
  }
  const std::string_view objection = authorizer_->objection(shown->username, shown->password, holder_);
  if (!objection.empty()) return refuse(objection, output);
  zmtp::append_command(output, "WELCOME", {});
  state_ = State::initiate;
}

void ZmtpHandshake::refuse(std::string_view why, std::vector<std::byte>& output) {
  zmtp::append_error(output, not_authorized);
  unauthorized_ = true;
  failure_ = why;
}

void ZmtpHandshake::judge_curve_hello(const zmtp::Command& command, std::vector<std::byte>& output) {
  const bool is_hello = command.name == "HELLO";
  switch (is_hello ? curve_->take_hello(command.data, output) : CurveOutcome::malformed) {
    case CurveOutcome::good: state_ = State::curve_initiate; return;
    case CurveOutcome::other_key: return refuse("a client with another server's key", output);
    case CurveOutcome::malformed: break;
  }
  zmtp::append_error(output, "Invalid HELLO");
  failure_ = "a CURVE handshake without HELLO";
}

void ZmtpHandshake::judge_curve_initiate(const zmtp::Command& command, std::vector<std::byte>& output) {
  const bool is_initiate = command.name == "INITIATE";
  if (!is_initiate || curve_->take_initiate(command.data) != CurveOutcome::good) {
    zmtp::append_error(output, "Invalid INITIATE");
    failure_ = "a CURVE handshake without INITIATE";
    return;
  }
  const std::string_view objection = authorizer_->key_objection(curve_->client_key(), holder_);
  if (!objection.empty()) return refuse(objection, output);
  if (!judge_socket_type(curve_->metadata(), output)) return;
  curve_->append_ready(output, zmtp::metadata_of(our_type_));
  cipher_ = curve_->make_cipher(body_bytes_max_);
  curve_.reset();
  state_ = State::complete;
}

bool ZmtpHandshake::judge_socket_type(ByteView properties, std::vector<std::byte>& output) {
  const auto type = zmtp::socket_type_of_ready(properties);
  if (type && std::find(peer_types_.begin(), peer_types_.end(), *type) != peer_types_.end()) return true;
  zmtp::append_error(output, "Invalid socket type");
  failure_ = "a socket of type " + std::string(type.value_or("?")).substr(0, type_bytes_logged_max) +
             ", which cannot connect to type " + std::string(our_type_);
  return false;
}

}  // namespace lightq::broker
