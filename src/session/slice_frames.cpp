/// Splits slices into frames that the client accepts. Layer: session.
#include "session/slice_frames.hpp"

#include <array>
#include <cstddef>

#include <lightq/base/batch_cut.hpp>
#include <lightq/protocol/session_link.hpp>

#include "delivery/batches/unpacked.hpp"

namespace lightq::broker {

namespace {

using session::deliver_head_bytes;
constexpr std::size_t frame_header_bytes = session::frame_layout::header_bytes;

/// Returns the first records of `slice`, as many as fit.
BatchSlice front_of(const BatchSlice& slice, std::size_t records_bytes_max) {
  BatchSlice front = slice;
  if (slice.records.size() <= records_bytes_max) return front;
  std::size_t bytes = 0;
  for (front.count = 0; front.count < slice.count; ++front.count) {
    const std::size_t next =
        bytes + record_bytes(load_little_endian<std::uint32_t>(slice.records.data() + bytes));
    if (next > records_bytes_max) break;
    bytes = next;
  }
  front.records = slice.records.first(bytes);
  return front;
}

/// Sends one frame. docs/session.md, "deliver".
void deliver_frame(FrameOutput& output, const BatchSlice& slice, const SliceAddress& address) {
  std::array<std::byte, frame_header_bytes + deliver_head_bytes + batch_layout::header_bytes> start;
  std::byte* const head = start.data() + frame_header_bytes;
  store_little_endian(head, address.delivery);
  store_little_endian(head + 4, address.hand_out);
  store_little_endian(head + 8, address.lost);
  const BatchHeaderSpace batch_header(head + deliver_head_bytes, batch_layout::header_bytes);
  const bool whole = slice.is_whole();
  const ByteView rest = whole ? slice.batch.bytes().subspan(batch_layout::header_bytes) : slice.records;
  if (whole) {
    write_anonymous_header(batch_header, slice.batch);
  } else {
    write_cut_header(batch_header, slice.batch, slice.first, slice.count, slice.records);
  }
  const std::size_t body_bytes = deliver_head_bytes + batch_layout::header_bytes + rest.size();
  const bool says_expired =
      address.expired && (output.client_codecs().bits() & session::hello_knows_expired) != 0;
  const auto flags = static_cast<std::uint8_t>((whole ? 0 : session::flag_part) |
                                               (says_expired ? session::flag_expired : 0));
  const session::FrameHeader header{session::Op::deliver, flags, address.channel, address.request,
                                    static_cast<std::uint32_t>(body_bytes)};
  session::encode_frame_header(start.data(), header, {head, deliver_head_bytes});
  output.deliver(start, rest);
}

}  // namespace

std::uint32_t deliver_slice(FrameOutput& output, const BatchSlice& slice, const SliceAddress& address) {
  const std::size_t batch_bytes_max = output.client_takes_bytes() - deliver_head_bytes;
  if (slice.batch.is_compressed() && slice.batch.total_bytes() <= batch_bytes_max) {
    deliver_frame(output, slice, address);
    return slice.count;
  }
  const auto plain = unpacked(slice);
  if (!plain) {
    output.out_of_memory_for_output();
    return slice.count;
  }
  if (!*plain) return 0;
  SliceAddress to = address;
  BatchSlice left = **plain;
  while (left.count > 0) {
    const BatchSlice front = front_of(left, batch_bytes_max - batch_layout::header_bytes);
    if (front.count == 0) break;
    deliver_frame(output, front, to);
    to.lost = 0;
    left.first += front.count;
    left.count -= front.count;
    left.records = left.records.subspan(front.records.size());
  }
  return slice.count - left.count;
}

}  // namespace lightq::broker
