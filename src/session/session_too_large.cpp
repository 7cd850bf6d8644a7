/// Refuses batches that are longer than the broker accepts. docs/session.md, "The frame". Layer: session.
#include <algorithm>
#include <cstddef>
#include <optional>

#include "session/session_connection.hpp"

namespace lightq::broker {

using session::FrameHeader;
using session::Op;

/// Returns the header if it is that of a sound produce frame that is longer than this broker accepts.
std::optional<FrameHeader> SessionConnection::produces_too_much(ByteView left) const {
  const auto decoded = session::decode_frame_header(left, session::no_bound);
  const bool produces = !decoded.fault && decoded.header.op == Op::produce;
  if (!produces || !session::frame_crc_fits(left, decoded.header)) return std::nullopt;
  return decoded.header;
}

/// Refuses the batch once its header is received, and skips the rest. Returns false if more bytes must be
/// received first.
bool SessionConnection::refuse_too_large(const FrameHeader& header, ByteView left, std::size_t& at) {
  constexpr std::size_t start_bytes = session::frame_layout::header_bytes + batch_layout::header_bytes;
  const std::uint64_t whole = session::frame_layout::header_bytes + std::uint64_t{header.body_bytes};
  const bool in_messages = carrier_ == SessionCarrier::zmtp;
  if (in_messages && messages_.left() < whole) {
    broken("a message that ends within a frame");
    return false;
  }
  if (left.size() < start_bytes) return false;
  if (in_messages) messages_.take(whole);
  const auto come = static_cast<std::size_t>(std::min<std::uint64_t>(whole, left.size()));
  at += come;
  skipped_bytes_ = whole - come;
  frame_taken_ = true;
  if (check_address(header))
    producing_.on_too_large(header,
                            left.subspan(session::frame_layout::header_bytes, batch_layout::header_bytes));
  return true;
}

}  // namespace lightq::broker
