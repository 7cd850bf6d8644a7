/// Begins the handshake with a ZeroMQ peer, and answers its heartbeats. Layer: zmtp.
#include "zmtp/zmtp_connection.hpp"

#include <algorithm>
#include <utility>

namespace lightq::broker {

Handshake* ZmtpConnection::begin_handshake() {
  if (auto handshake = make_handshake()) opening_.emplace(std::move(*handshake), admission_);
  return opening_ ? &*opening_ : nullptr;
}

void ZmtpConnection::handle_command(ByteView body) {
  const auto command = zmtp::parse_command(body);
  if (!command) return life().fail("a malformed command");
  if (command->name != "PING") return on_command(*command);
  if (command->data.size() < zmtp::ping_ttl_bytes) return life().fail("a malformed PING");
  const auto context = command->data.subspan(zmtp::ping_ttl_bytes);
  limit_silence(zmtp::ttl_of_ping(command->data), "PING");
  pings_ = Pings::unanswered;
  ping_context_bytes_ = std::min(context.size(), ping_context_.size());
  std::copy_n(context.begin(), ping_context_bytes_, ping_context_.begin());
}

void ZmtpConnection::on_consumed() {
  if (pings_ != Pings::unanswered) return;
  pings_ = Pings::answered;
  if (!life().failed()) send_pong(ByteView(ping_context_).first(ping_context_bytes_));
}

void ZmtpConnection::send_pong(ByteView context) {
  // A peer that sends PING and does not read the PONGs fills the buffer. It gets no more of them.
  if (output().is_broken()) return;
  if (output().is_blocked() && output().buffered() > zmtp::command_bytes_max) return;
  zmtp::append_command(output().tail(), "PONG", context);
  output().flush();
}

void ZmtpConnection::keep_alive(bool all) {
  // Peers of ZMTP 3.0 have no heartbeats, and need not understand a PONG.
  if (!is_open() || !paused() || peer_gone() || !opening_ || !opening_->peer_speaks_3_1()) return;
  if (all || pings_ != Pings::none) send_pong({});
}

}  // namespace lightq::broker
