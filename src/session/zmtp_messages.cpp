/// Parses ZeroMQ frame headers and commands in a session's input. Layer: session.
#include "session/zmtp_messages.hpp"

namespace lightq::broker {

ZmtpMessages::Next ZmtpMessages::next(ByteView bytes) {
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
