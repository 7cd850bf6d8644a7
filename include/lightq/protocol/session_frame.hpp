/// The header of a session's frames: operation, channel and length. docs/session.md is the specification.
/// Layer: protocol.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <lightq/base/batch_layout.hpp>
#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

namespace lightq::inline v1::session {

inline constexpr std::uint16_t version_oldest = 1;
inline constexpr std::uint16_t version_newest = 1;

/// The operation of a frame. The values are those on the wire.
enum class Op : std::uint8_t {
  hello = 1,
  welcome = 2,
  produce_open = 3,
  produce_opened = 4,
  produce = 5,
  confirm = 6,
  refuse = 7,
  consume_open = 8,
  consume_opened = 9,
  deliver = 10,
  credit = 11,
  acknowledge = 12,
  reject = 13,
  extend = 14,
  seek = 15,
  read = 16,
  done = 17,
  close = 18,
  heartbeat = 19,
  error = 20,
  goodbye = 21,
  present = 22,
  share = 23,
  shared = 24,
  late = 25,
  started = 26,
  revoked = 27,
};

/// The position of each field, in bytes from the frame's start.
namespace frame_layout {
inline constexpr std::size_t op = 0;           ///< u8
inline constexpr std::size_t flags = 1;        ///< u8
inline constexpr std::size_t zero = 2;         ///< u16
inline constexpr std::size_t channel = 4;      ///< u32
inline constexpr std::size_t request = 8;      ///< u32
inline constexpr std::size_t body_bytes = 12;  ///< u32
inline constexpr std::size_t crc = 16;         ///< u32: CRC-32C of bytes [0,16) and the body up to its batch
inline constexpr std::size_t header_bytes = 20;
}  // namespace frame_layout

/// produce: the batch should become durable soon.
inline constexpr std::uint8_t flag_flush = 1;
/// deliver: only a part of the batch that the producer sent.
inline constexpr std::uint8_t flag_part = 1;
/// deliver: the messages have expired. Only in replies to a read, and to a client that knows it.
inline constexpr std::uint8_t flag_expired = 2;
/// reject: the messages are dead. The body has the reason, and they are not delivered again.
inline constexpr std::uint8_t flag_dead_letter = 1;
/// reject: the consumer has not begun to process the messages, so this delivery does not count.
inline constexpr std::uint8_t flag_release = 4;
/// share and shared: each side wakes the other one over the socket.
inline constexpr std::uint8_t flag_wakes_by_socket = 1;
/// acknowledge and started: everything below one offset.
inline constexpr std::uint8_t flag_cumulative = 1;
/// acknowledge, reject and extend: the body has the number of the messages' hand-out.
inline constexpr std::uint8_t flag_hand_out = 2;
/// consume_opened: the consumer has leases on the messages that it receives.
inline constexpr std::uint8_t flag_leases = 1;
/// consume_opened: the broker accepts `reject` with flag_dead_letter on this channel.
inline constexpr std::uint8_t flag_dead_letters = 2;

/// The rules for all frames of one operation.
struct OpRule {
  std::string_view name;   ///< as in docs/session.md
  std::uint8_t flags = 0;  ///< the flags that are allowed
  std::uint32_t body_bytes_min = 0;
  std::uint32_t body_bytes_max = 0;  ///< `no_bound`: the maximum that the receiver has announced
  /// Bytes of the body in front of a batch; nothing: the body has no batch.
  std::optional<std::uint32_t> before_batch;
};

inline constexpr std::uint32_t no_bound = UINT32_MAX;
inline constexpr std::uint32_t small_body_bytes_max = 1024;
inline constexpr std::uint32_t ranges_body_bytes_max = 64 * limits::KiB;
inline constexpr std::uint32_t deliver_head_bytes = 16;
/// The size of a batch of one empty message.
inline constexpr std::uint32_t batch_bytes_min =
    static_cast<std::uint32_t>(batch_layout::header_bytes + record_bytes(0));

/// Indexed by operation, which starts at 1.
inline constexpr std::array<OpRule, 27> op_rules = {{
    {"hello", 0, 24, small_body_bytes_max, {}},
    {"welcome", 0, 32, 32, {}},
    {"produce_open", 0, 17, small_body_bytes_max, {}},
    {"produce_opened", 0, 48, 64, {}},
    {"produce", flag_flush, batch_bytes_min, no_bound, 0},
    {"confirm", 0, 24, 24, {}},
    {"refuse", 0, 28, small_body_bytes_max, {}},
    {"consume_open", 0, 55, small_body_bytes_max, {}},
    {"consume_opened", flag_leases | flag_dead_letters, 40, 40, {}},
    {"deliver", flag_part | flag_expired, deliver_head_bytes + batch_bytes_min, no_bound, deliver_head_bytes},
    {"credit", 0, 12, 12, {}},
    {"acknowledge", flag_cumulative | flag_hand_out, 8, ranges_body_bytes_max, {}},
    {"reject", flag_dead_letter | flag_hand_out | flag_release, 20, ranges_body_bytes_max, {}},
    {"extend", flag_hand_out, 20, ranges_body_bytes_max, {}},
    {"seek", 0, 16, 16, {}},
    {"read", 0, 27, small_body_bytes_max, {}},
    {"done", 0, 8, 8, {}},
    {"close", 0, 0, 0, {}},
    {"heartbeat", 0, 0, 0, {}},
    {"error", 0, 4, small_body_bytes_max, {}},
    {"goodbye", 0, 4, small_body_bytes_max, {}},
    {"present", 0, 3, small_body_bytes_max, {}},
    {"share", flag_wakes_by_socket, 8, 8, {}},
    {"shared", flag_wakes_by_socket, 8, 8, {}},
    {"late", 0, 16, ranges_body_bytes_max, {}},
    {"started", flag_cumulative, 16, ranges_body_bytes_max, {}},
    {"revoked", 0, 24, ranges_body_bytes_max, {}},
}};

/// Returns the rule of an operation. Requires: a known operation.
constexpr const OpRule& rule_of(Op op) {
  return op_rules.at(static_cast<std::size_t>(op) - 1);
}

/// Why bytes are not a frame. After any of these faults the rest of the stream cannot be read.
enum class FrameFault {
  unknown_op,
  unknown_flags,   ///< flags that the operation does not have
  reserved_bytes,  ///< reserved bytes are not zero
  bad_length,      ///< a length that the operation or the receiver does not allow
  bad_crc,
};

constexpr std::string_view to_word(FrameFault fault) {
  constexpr std::array<std::string_view, 5> words = {"unknown_op", "unknown_flags", "reserved_bytes",
                                                     "bad_length", "bad_crc"};
  return words.at(static_cast<std::size_t>(fault));
}

/// A frame's header without its checksum. A value type.
struct FrameHeader {
  Op op = Op::heartbeat;
  std::uint8_t flags = 0;
  std::uint32_t channel = 0;
  std::uint32_t request = 0;
  std::uint32_t body_bytes = 0;

  /// Returns how many bytes of the body the frame's checksum covers.
  [[nodiscard]] std::uint32_t checked_bytes() const { return rule_of(op).before_batch.value_or(body_bytes); }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

/// The header or fault that decode_frame_header returns. It reads only the first `frame_layout::header_bytes`
/// of `bytes`, which must be there. It does not check the checksum, which needs the body; see
/// `frame_crc_fits`. `body_bytes_max` is the longest body that the receiver accepts.
struct DecodedFrameHeader {
  std::optional<FrameFault> fault;
  FrameHeader header;  ///< valid if there is no fault
};

inline DecodedFrameHeader decode_frame_header(ByteView bytes, std::uint32_t body_bytes_max) {
  using namespace frame_layout;
  const auto op_value = static_cast<std::uint8_t>(bytes[op]);
  if (op_value == 0 || op_value > op_rules.size()) return {FrameFault::unknown_op, {}};
  const FrameHeader header{static_cast<Op>(op_value), static_cast<std::uint8_t>(bytes[flags]),
                           load_little_endian<std::uint32_t>(bytes.data() + channel),
                           load_little_endian<std::uint32_t>(bytes.data() + request),
                           load_little_endian<std::uint32_t>(bytes.data() + body_bytes)};
  const OpRule& rule = rule_of(header.op);
  if ((header.flags & ~rule.flags) != 0) return {FrameFault::unknown_flags, {}};
  if (load_little_endian<std::uint16_t>(bytes.data() + zero) != 0) return {FrameFault::reserved_bytes, {}};
  const std::uint32_t most = rule.body_bytes_max == no_bound ? body_bytes_max : rule.body_bytes_max;
  if (header.body_bytes < rule.body_bytes_min || header.body_bytes > most)
    return {FrameFault::bad_length, {}};
  return {std::nullopt, header};
}

/// Returns the checksum of a frame. `start` has the header's first 16 bytes; `checked` is the part of the
/// body that the checksum covers.
inline std::uint32_t frame_crc(const std::byte* start, ByteView checked) {
  return crc32c(checked, crc32c({start, frame_layout::crc}));
}

/// Returns true if the checksum is correct. Requires: `frame` has the header and at least `checked_bytes` of
/// the body.
inline bool frame_crc_fits(ByteView frame, const FrameHeader& header) {
  const ByteView checked = frame.subspan(frame_layout::header_bytes, header.checked_bytes());
  return load_little_endian<std::uint32_t>(frame.data() + frame_layout::crc) ==
         frame_crc(frame.data(), checked);
}

/// Writes a header and its checksum. Requires: space for header_bytes at `to`; `checked` is the part of the
/// body that the checksum covers.
inline void encode_frame_header(std::byte* to, const FrameHeader& header, ByteView checked) {
  using namespace frame_layout;
  to[op] = static_cast<std::byte>(header.op);
  to[flags] = static_cast<std::byte>(header.flags);
  store_little_endian(to + zero, std::uint16_t{0});
  store_little_endian(to + channel, header.channel);
  store_little_endian(to + request, header.request);
  store_little_endian(to + body_bytes, header.body_bytes);
  store_little_endian(to + crc, frame_crc(to, checked));
}

}  // namespace lightq::inline v1::session
