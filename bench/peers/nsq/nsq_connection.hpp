/// A connection to nsqd in its TCP protocol V2. Layer: bench peers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

#include "peers/text_socket.hpp"

namespace lightq::bench {

/// The wishes of a new connection (command IDENTIFY). 0: the default of nsqd.
struct NsqTerms {
  int heartbeat_ms = -1;        ///< -1: none. Consumers must have them
  int output_buffer_bytes = 0;  ///< -1: none, so nsqd writes each message at once
  int output_buffer_ms = 0;     ///< how long nsqd may gather output
  int message_timeout_ms = 0;   ///< until nsqd delivers an unfinished message again
};

/// A delivered message. Lifetime: that of its frame.
struct NsqMessage {
  std::string_view id;
  ByteView content;
};

/// Speaks the protocol as nsqd 1.3.0 does (nsqd/protocol_v2.go and nsqd/message.go in its sources). Calls
/// that read or write throw std::runtime_error for an error of nsqd, for a malformed frame, and as
/// TextSocket does. One thread.
class NsqConnection {
 public:
  enum class Kind { response, message };
  struct Frame {
    Kind kind;
    ByteView data;  ///< valid until the next call
  };

  NsqConnection(std::uint16_t port, const NsqTerms& terms);

  /// Gathers output until `write_out`.
  void put(std::string_view text) { socket_.put(text); }
  void write_out() { socket_.write_out(); }

  [[nodiscard]] bool has_input(std::chrono::milliseconds wait) { return socket_.has_input(wait); }
  /// Returns the next frame; nothing if it was a heartbeat, which it answers. A frame has at most 1 MiB.
  std::optional<Frame> next();
  /// Reads until this response comes, up to `peer_patience`. Another one is an error. Skips messages.
  void expect(std::string_view response);

 private:
  std::uint32_t number();
  TextSocket socket_;
};

/// Returns the four bytes that a number has in the protocol.
std::string nsq_number(std::size_t number);

/// Returns the parts of a message's frame. Throws std::runtime_error if it is too short.
NsqMessage parse_nsq_message(ByteView frame);

}  // namespace lightq::bench
