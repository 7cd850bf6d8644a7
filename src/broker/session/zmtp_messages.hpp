/// The ZeroMQ messages that a session's frames come in. Layer: session.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include <lightq/base/types.hpp>

#include "broker/endpoint/zmtp.hpp"

namespace lightq::broker {

/// Where the messages of one connection begin and end, as its bytes come: docs/session.md, "Transport". No
/// I/O, and no memory but a count. One thread.
class ZmtpMessages {
 public:
  /// More bytes have to come.
  struct Incomplete {};
  /// A message has begun behind so many bytes.
  struct Begun {
    std::size_t header_bytes = 0;
  };
  /// A ZMTP command.
  struct Command {
    std::size_t bytes = 0;  ///< all of it
    ByteView body;
  };
  struct Broken {
    std::string why;
  };
  using Next = std::variant<Incomplete, Begun, Command, Broken>;

  /// Bytes of frames that are still to come of the message that has begun; 0: none has.
  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// So many of them have been taken.
  void take(std::uint64_t bytes) {
    assert(bytes <= left_);
    left_ -= bytes;
  }
  /// What `bytes` begin with, between two messages. One of several parts is none of ours, nor is an empty
  /// one.
  Next next(ByteView bytes);

 private:
  std::uint64_t left_ = 0;
};

}  // namespace lightq::broker
