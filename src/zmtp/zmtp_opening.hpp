/// The ZMTP handshake of a connection, and the limits that it meets. Layer: zmtp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/handshake.hpp"
#include "zmtp/zmtp_handshake.hpp"

namespace lightq::broker {

/// Decides which peers of ZeroMQ may connect. The owners of connections implement it. Thread: the
/// connection's.
class ZmtpAdmission {
 public:
  virtual ~ZmtpAdmission() = default;
  /// Returns the authorizer that checks tickets of ZeroMQ peers. Null: the handshake asks for no ticket.
  [[nodiscard]] virtual const ConnectionAuthorizer* authorizer() const = 0;
  /// Called before the peer's bytes are parsed in the handshake. False: the connection is closed, because
  /// the limit on connections is reached.
  [[nodiscard]] virtual bool has_room() { return true; }
  /// Called when the connection's user is known: at the end of the handshake, before the peer learns of it.
  /// False: the connection is closed, because the user's limit is reached.
  [[nodiscard]] virtual bool has_room_for(const TicketHolder& /*holder*/) { return true; }
};

/// Makes a ZmtpHandshake with the peer of one connection, unless the owner has no room for the peer. Thread:
/// the connection's.
class ZmtpOpening final : public Handshake {
 public:
  /// Lifetime: `admission` and its authorizer outlive this.
  ZmtpOpening(ZmtpHandshake handshake, ZmtpAdmission& admission)
      : handshake_(std::move(handshake)), admission_(admission) {
    handshake_.guard(admission.authorizer());
  }

  [[nodiscard]] bool unauthorized() const { return handshake_.unauthorized(); }
  [[nodiscard]] const TicketHolder& holder() const { return handshake_.holder(); }
  [[nodiscard]] bool peer_speaks_3_1() const { return handshake_.peer_speaks_3_1(); }

  void begin(std::vector<std::byte>& output) override { handshake_.begin(output); }
  std::size_t take(ByteView bytes, std::vector<std::byte>& output) override;
  [[nodiscard]] Outcome outcome() const override;
  [[nodiscard]] const std::string& failure() const override {
    return no_room_.empty() ? handshake_.failure() : no_room_;
  }
  [[nodiscard]] std::size_t missing(ByteView left) const override { return handshake_.missing(left); }
  [[nodiscard]] std::unique_ptr<WireCipher> take_cipher() override { return handshake_.take_cipher(); }

 private:
  ZmtpHandshake handshake_;
  ZmtpAdmission& admission_;
  std::string no_room_;  // the limit that the peer has met
};

}  // namespace lightq::broker
