/// The ZeroMQ messages that carry a session's frames. Layer: session.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include <lightq/base/types.hpp>

#include "zmtp/zmtp.hpp"

namespace lightq::broker {

/// Finds where the messages of one connection begin and end in its input. docs/session.md, "Transport".
/// Does no I/O and stores only a count. For one thread.
class ZmtpMessages {
 public:
  /// More bytes must be received first.
  struct Incomplete {};
  /// A message begins after so many bytes.
  struct Begun {
    std::size_t header_bytes = 0;
  };
  /// A ZMTP command.
  struct Command {
    std::size_t bytes = 0;  ///< the whole command
    ByteView body;
  };
  struct Broken {
    std::string why;
  };
  using Next = std::variant<Incomplete, Begun, Command, Broken>;

  /// Returns how many bytes of the current message are still to be taken. 0: no message has begun.
  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// Counts bytes of the current message as taken.
  void take(std::uint64_t bytes) {
    assert(bytes <= left_);
    left_ -= bytes;
  }
  /// Parses the start of `bytes`. Requires: no message is under way. Messages of several parts, or without
  /// content, are an error.
  Next next(ByteView bytes);

 private:
  std::uint64_t left_ = 0;
};

inline ZmtpMessages::Next ZmtpMessages::next(ByteView bytes) {
  assert(left_ == 0);
  zmtp::FrameHeader header;
  const auto outcome = zmtp::parse_frame_header(bytes, header);
  if (outcome == zmtp::FrameOutcome::incomplete) return Incomplete{};
  if (outcome == zmtp::FrameOutcome::invalid) return Broken{"a malformed ZeroMQ frame"};
  if (header.command) {
    if (header.body_bytes > zmtp::command_bytes_max) return Broken{"a ZeroMQ command that is too long"};
    const std::size_t whole = header.header_bytes + static_cast<std::size_t>(header.body_bytes);
    if (bytes.size() < whole) return Incomplete{};
    return Command{whole, bytes.subspan(header.header_bytes, whole - header.header_bytes)};
  }
  if (header.more) return Broken{"a message of several parts"};
  if (header.body_bytes == 0) return Broken{"an empty message"};
  left_ = header.body_bytes;
  return Begun{header.header_bytes};
}

}  // namespace lightq::broker
