/// The handshake with a ZeroMQ peer: greeting, ticket if one is required, socket types, READY. Layer:
/// zmtp.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/ticket.hpp"
#include "net/wire_cipher.hpp"
#include "zmtp/zmtp.hpp"
#include "zmtp/zmtp_curve.hpp"

namespace lightq::broker {

class ConnectionAuthorizer;

/// The handshake of one connection, over bytes. Does no I/O. The connection owns it. Thread: the
/// connection's. The security mechanism decides the steps that the peer takes:
///
///     NULL:   greeting ──────────────────────────────► READY ─► complete
///     PLAIN:  greeting ─► HELLO (the ticket) ─► INITIATE ─► complete
///     CURVE:  greeting ─► HELLO ─► INITIATE (the client's key) ─► complete; encrypted from then on
class ZmtpHandshake {
 public:
  /// `our_type`: the ZeroMQ socket type that this side announces. `peer_types`: the types that it accepts.
  /// Lifetime: the texts outlive the handshake.
  ZmtpHandshake(std::string_view our_type, std::initializer_list<std::string_view> peer_types)
      : our_type_(our_type), peer_types_(peer_types) {}

  /// Sets the authorizer that authorizes the peer. An encrypted authorizer requires the mechanism CURVE. A
  /// authorizer that requires a ticket requires PLAIN. An open authorizer accepts NULL and PLAIN. With null
  /// there is no authorizer, and the mechanism is NULL. Requires: `begin` was not called. Lifetime: the
  /// authorizer outlives the handshake.
  void guard(const ConnectionAuthorizer* authorizer) { authorizer_ = authorizer; }
  /// Sets the longest body of an encrypted frame after the handshake; a longer one ends the connection. The
  /// default is the longest body of a command.
  void take_bodies_up_to(std::uint64_t bytes) { body_bytes_max_ = bytes; }
  /// Appends the beginning of this side's greeting to `output`.
  void begin(std::vector<std::byte>& output) const;
  /// Takes the bytes of complete steps from the front of `bytes` and appends the replies to `output`. Returns
  /// how many bytes were taken. The caller passes the rest again, followed by newer bytes.
  std::size_t take(ByteView bytes, std::vector<std::byte>& output);

  /// Returns how many more bytes must follow `left`, the rest of `take`, before `take` can continue; at least
  /// 1.
  [[nodiscard]] std::size_t missing(ByteView left) const;

  [[nodiscard]] bool complete() const { return state_ == State::complete; }
  /// Returns the cipher for all bytes after a complete handshake. Returns null if the connection is not
  /// encrypted, or if the cipher was taken before.
  [[nodiscard]] std::unique_ptr<WireCipher> take_cipher() { return std::move(cipher_); }
  /// Returns the reason why the peer was refused; empty if it was not.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Returns true if the peer was refused because no ZeroMQ peer of any version sends such bytes.
  [[nodiscard]] bool is_nonsense() const { return is_nonsense_; }
  /// Returns true if the peer was refused because it showed no valid ticket.
  [[nodiscard]] bool unauthorized() const { return unauthorized_; }
  /// Returns the holder of the valid ticket that the peer has shown. At an open authorizer, a peer without
  /// one has a holder without a user.
  [[nodiscard]] const TicketHolder& holder() const { return holder_; }
  /// Returns true if the peer speaks ZMTP 3.1 and so understands PING and PONG.
  [[nodiscard]] bool peer_speaks_3_1() const { return peer_speaks_3_1_; }

 private:
  enum class State { greeting, hello, initiate, curve_hello, curve_initiate, ready, complete };
  std::size_t take_greeting(ByteView bytes, std::vector<std::byte>& output);
  void agree_on_curve(std::optional<zmtp::Mechanism> theirs, bool peer_is_server,
                      std::vector<std::byte>& output);
  void agree_on(zmtp::Mechanism theirs, bool peer_is_server, std::vector<std::byte>& output);
  std::size_t take_command(ByteView bytes, std::vector<std::byte>& output);
  void judge(const zmtp::Command& command, std::vector<std::byte>& output);
  void judge_hello(const zmtp::Command& command, std::vector<std::byte>& output);
  void judge_curve_hello(const zmtp::Command& command, std::vector<std::byte>& output);
  void judge_curve_initiate(const zmtp::Command& command, std::vector<std::byte>& output);
  void refuse(std::string_view why, std::vector<std::byte>& output);
  bool judge_socket_type(ByteView properties, std::vector<std::byte>& output);

  std::string_view our_type_;
  std::vector<std::string_view> peer_types_;
  const ConnectionAuthorizer* authorizer_ = nullptr;
  State state_ = State::greeting;
  bool peer_speaks_3_1_ = false;
  bool unauthorized_ = false;
  std::uint64_t body_bytes_max_ = zmtp::command_bytes_max;
  std::unique_ptr<CurveServer> curve_;  // null, except during a CURVE handshake
  TicketHolder holder_;
  std::unique_ptr<WireCipher> cipher_;
  bool is_nonsense_ = false;
  std::string failure_;
};

}  // namespace lightq::broker
