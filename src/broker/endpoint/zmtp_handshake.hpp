/// How a ZeroMQ peer and this side introduce themselves: greeting, READY, and whether the two socket types go
/// together. Layer: endpoint.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "broker/endpoint/zmtp.hpp"

namespace lightq::broker {

/// One connection's handshake over bytes; no I/O. One thread.
class ZmtpHandshake {
 public:
  /// `our_type`: the ZeroMQ socket type this side announces. `peer_types`: those it gets on with. Text that
  /// outlives the handshake.
  ZmtpHandshake(std::string_view our_type, std::initializer_list<std::string_view> peer_types)
      : our_type_(our_type), peer_types_(peer_types) {}

  /// Appends what this side says first.
  static void greet(std::vector<std::byte>& output);
  /// Takes what the handshake needs off the front of `bytes` and answers how many bytes they were; what is
  /// left comes again, with more behind it. Appends what is to be said to `output`.
  std::size_t take(ByteView bytes, std::vector<std::byte>& output);

  [[nodiscard]] bool complete() const { return state_ == State::complete; }
  /// Why the peer is turned away; empty: it is not.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// The peer knows PING and PONG.
  [[nodiscard]] bool peer_speaks_3_1() const { return peer_speaks_3_1_; }

 private:
  enum class State { greeting, ready, complete };
  std::size_t take_greeting(ByteView bytes, std::vector<std::byte>& output);
  std::size_t take_ready(ByteView bytes, std::vector<std::byte>& output);
  bool judge_ready(ByteView body, std::vector<std::byte>& output);

  std::string_view our_type_;
  std::vector<std::string_view> peer_types_;
  State state_ = State::greeting;
  bool peer_speaks_3_1_ = false;
  std::string failure_;
};

}  // namespace lightq::broker
