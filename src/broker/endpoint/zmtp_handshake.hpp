/// How a ZeroMQ peer and this side introduce themselves: greeting, ticket where one is asked for, READY, and
/// whether the two socket types go together. Layer: endpoint.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/endpoint/ticket.hpp"
#include "broker/endpoint/wire_cipher.hpp"
#include "broker/endpoint/zmtp.hpp"
#include "broker/endpoint/zmtp_curve.hpp"

namespace lightq::broker {

class Gate;

/// One connection's handshake over bytes; no I/O. One thread.
///
///     NULL:   greeting ──────────────────────────────► READY ─► complete
///     PLAIN:  greeting ─► HELLO (the ticket) ─► INITIATE ─► complete
///     CURVE:  greeting ─► HELLO ─► INITIATE (the client's key) ─► complete, and encrypted from here on
class ZmtpHandshake {
 public:
  /// `our_type`: the ZeroMQ socket type this side announces. `peer_types`: those it gets on with. Text that
  /// outlives the handshake.
  ZmtpHandshake(std::string_view our_type, std::initializer_list<std::string_view> peer_types)
      : our_type_(our_type), peer_types_(peer_types) {}

  /// Before `begin`: the gate that the peer comes to, which outlives the handshake. One that is encrypted
  /// asks for the mechanism CURVE, one that demands a ticket for PLAIN; an open one takes what the peer
  /// speaks, NULL or PLAIN. Null: there is none, and the mechanism is NULL.
  void guard(const Gate* gate) { gate_ = gate; }
  /// Encrypted frames with a longer body end the connection; by default those longer than a command.
  void take_bodies_up_to(std::uint64_t bytes) { body_bytes_max_ = bytes; }
  /// Appends what this side says first.
  void begin(std::vector<std::byte>& output) const;
  /// Takes what the handshake needs off the front of `bytes` and answers how many bytes they were; what is
  /// left comes again, with more behind it. Appends what is to be said to `output`.
  std::size_t take(ByteView bytes, std::vector<std::byte>& output);

  /// Of what `take` has left: how many more bytes it takes until there is something to take, at least 1.
  [[nodiscard]] std::size_t missing(ByteView left) const;

  [[nodiscard]] bool complete() const { return state_ == State::complete; }
  /// What encrypts all that comes behind a complete handshake; null: nothing does, or it has been taken.
  [[nodiscard]] std::unique_ptr<WireCipher> take_cipher() { return std::move(cipher_); }
  /// Why the peer is turned away; empty: it is not.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// It is turned away for what no ZeroMQ peer of any version says.
  [[nodiscard]] bool is_nonsense() const { return is_nonsense_; }
  /// It is turned away for want of a good ticket.
  [[nodiscard]] bool unauthorized() const { return unauthorized_; }
  /// Whose ticket the peer has shown, if it was a good one; of the strangers where none was asked for.
  [[nodiscard]] const TicketHolder& holder() const { return holder_; }
  /// The peer knows PING and PONG.
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
  const Gate* gate_ = nullptr;
  State state_ = State::greeting;
  bool peer_speaks_3_1_ = false;
  bool unauthorized_ = false;
  std::uint64_t body_bytes_max_ = zmtp::command_bytes_max;
  std::unique_ptr<CurveServer> curve_;  // while its handshake lasts
  TicketHolder holder_;
  std::unique_ptr<WireCipher> cipher_;
  bool is_nonsense_ = false;
  std::string failure_;
};

}  // namespace lightq::broker
