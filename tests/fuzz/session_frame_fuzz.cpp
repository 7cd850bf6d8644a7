/// Fuzz target: reads any bytes as session frames. Each gives a value or a fault, and each value is written
/// as the bytes it was read from.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include <lightq/base/batch.hpp>
#include <lightq/protocol/session_consuming.hpp>
#include <lightq/protocol/session_memory.hpp>
#include <lightq/protocol/session_producing.hpp>

namespace lightq::session {
namespace {

/// Returns true if `header` has the op of this body.
template <typename Body>
bool take(const FrameHeader& header, ByteView body) {
  if (header.op != Body::op) return false;
  const auto decoded = Body::decode(body, header.flags);
  if (!decoded) return true;
  const auto again = encode_frame(*decoded, header.channel, header.request);
  const ByteView written = ByteView(again).subspan(frame_layout::header_bytes);
  if (!std::equal(body.begin(), body.end(), written.begin(), written.end())) std::abort();
  if (decode_frame_header(again, frame_bytes_least).header != header) std::abort();
  return true;
}

template <typename... Bodies>
void take_one_of(const FrameHeader& header, ByteView body) {
  static_cast<void>((take<Bodies>(header, body) || ...));
}

void take_stream(ByteView left) {
  while (left.size() >= frame_layout::header_bytes) {
    const auto decoded = decode_frame_header(left, frame_bytes_least);
    if (decoded.fault) return;
    const std::size_t whole = frame_layout::header_bytes + decoded.header.body_bytes;
    if (left.size() < whole) return;
    // A fuzzer does not find correct checksums. They are computed but not required.
    static_cast<void>(frame_crc_fits(left, decoded.header));
    const ByteView body = left.subspan(frame_layout::header_bytes, decoded.header.body_bytes);
    take_one_of<Hello, Welcome, ProduceOpen, ProduceOpened, Confirm, Refuse, ConsumeOpen, ConsumeOpened,
                Credit, Acknowledge, Reject, Extend, Seek, Read, Done, Close, Heartbeat, ErrorAnswer, Goodbye,
                Present, Share, Shared, Late, Started, Revoked>(decoded.header, body);
    if (decoded.header.op == Op::deliver) {
      static_cast<void>(DeliverHead::decode(body.first(deliver_head_bytes)));
      static_cast<void>(BatchView::check(body.subspan(deliver_head_bytes)));
    }
    left = left.subspan(whole);
  }
}

}  // namespace
}  // namespace lightq::session

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lightq::session::take_stream(std::as_bytes(std::span(data, size)));
  return 0;
}
