/// A connection that may speak ZMTP: its handshake, commands and heartbeats. Layer: zmtp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "access/ticket.hpp"
#include "net/connection.hpp"
#include "zmtp/zmtp.hpp"
#include "zmtp/zmtp_opening.hpp"

namespace lightq::broker {

/// A connection over which a peer may speak ZMTP. Makes the handshake, knows the holder of the peer's ticket,
/// and answers PING. Without a handshake the bytes are those of another protocol, and the peer shows no
/// ticket here. Derived classes define the frames. Thread: the reactor's.
class ZmtpConnection : public Connection {
 public:
  /// The object that keeps the connection, and decides which peers may connect.
  class Owner : public Connection::Owner, public ZmtpAdmission {};

  ZmtpConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch)
      : Connection(loop, std::move(descriptor), owner, scratch), admission_(owner) {}

  /// Returns true if the connection was refused for lack of a valid ticket.
  [[nodiscard]] bool unauthorized() const { return opening_ && opening_->unauthorized(); }
  /// Returns the holder of the ticket that the peer showed. Returns an empty holder if the peer showed none,
  /// or one without a user.
  [[nodiscard]] TicketHolder holder() const { return opening_ ? opening_->holder() : TicketHolder{}; }
  /// Sends a PONG without a PING, on a connection that is not read from for a while. The broker does not read
  /// the peer's PINGs then, and the PONG shows that it is alive although the log is full. `all`: also if the
  /// peer has sent no PING yet.
  void keep_alive(bool all);

 protected:
  /// Makes the handshake of the two sides. Nothing: the connection speaks another protocol.
  [[nodiscard]] virtual std::optional<ZmtpHandshake> make_handshake() const = 0;
  /// Called with a command that is not about heartbeats.
  virtual void on_command(const zmtp::Command&) {}
  /// Handles the body of a command frame. Answers PING itself; if several came together, only the last. Ends
  /// the connection if nothing arrives for the TTL of the last PING.
  void handle_command(ByteView body);
  [[nodiscard]] std::uint64_t held_by() const override { return holder().user; }

 private:
  /// The PINGs that the peer has sent.
  enum class Pings { none, answered, unanswered };

  Handshake* begin_handshake() final;
  void on_consumed() final;
  void send_pong(ByteView context);

  ZmtpAdmission& admission_;
  std::optional<ZmtpOpening> opening_;  // nothing: another protocol
  Pings pings_ = Pings::none;
  std::array<std::byte, zmtp::ping_context_bytes_max> ping_context_{};  // of the last PING
  std::size_t ping_context_bytes_ = 0;
};

}  // namespace lightq::broker
