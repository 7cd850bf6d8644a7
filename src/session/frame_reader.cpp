/// Checks the headers of a session's frames. docs/session.md, "The frame". Layer: session.
#include "session/frame_reader.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include <lightq/base/batch.hpp>

namespace lightq::broker {

using session::FrameHeader;

namespace {

constexpr std::size_t frame_start_bytes = session::frame_layout::header_bytes;
constexpr const char* cut_message = "a message that ends within a frame";

/// Returns the header if it is that of a sound produce frame that is longer than this broker accepts.
std::optional<FrameHeader> produces_too_much(ByteView left) {
  const auto decoded = session::decode_frame_header(left, session::no_bound);
  const bool produces = !decoded.fault && decoded.header.op == session::Op::produce;
  if (!produces || !session::frame_crc_fits(left, decoded.header)) return std::nullopt;
  return decoded.header;
}

}  // namespace

FrameReader::Next FrameReader::fail(std::string why, bool is_nonsense) {
  fault_ = std::move(why);
  is_nonsense_ = is_nonsense;
  return {Found::fault, {}, {}};
}

/// Returns the command or fault before the next message, or moves to the beginning of that message.
FrameReader::Next FrameReader::begin_message(std::span<std::byte> bytes, std::size_t& at) {
  const auto next = messages_.next(bytes.subspan(at));
  if (const auto* begun = std::get_if<ZmtpMessages::Begun>(&next)) {
    at += begun->header_bytes;
    return {Found::begun, {}, {}};
  }
  if (const auto* command = std::get_if<ZmtpMessages::Command>(&next)) {
    const auto body = bytes.subspan(at + command->bytes - command->body.size(), command->body.size());
    at += command->bytes;
    return {Found::command, {}, body};
  }
  if (const auto* fault = std::get_if<ZmtpMessages::Broken>(&next)) return fail(fault->why);
  return {};
}

FrameReader::Next FrameReader::next(std::span<std::byte> bytes, std::size_t& at, std::uint32_t body_bytes_max,
                                    bool greeted) {
  if (in_messages_ && messages_.left() == 0) {
    if (const Next before = begin_message(bytes, at); before.found != Found::begun) return before;
  }
  const auto left = bytes.subspan(at);
  if (in_messages_ && messages_.left() < frame_start_bytes) return fail(cut_message);
  if (left.size() < frame_start_bytes) return {};
  const auto [fault, header] = session::decode_frame_header(left, body_bytes_max);
  if (fault == session::FrameFault::bad_length && greeted) {
    if (const auto too_large = produces_too_much(left)) return take_too_large(*too_large, left, at);
  }
  if (fault) return fail("an invalid frame: " + std::string(to_word(*fault)), true);
  if (!greeted && header.op != session::Op::hello) return fail("a frame before hello");
  const std::size_t whole = frame_start_bytes + header.body_bytes;
  if (in_messages_ && messages_.left() < whole) return fail(cut_message);
  if (left.size() < whole) return {Found::begun, header, left};
  at += whole;
  if (in_messages_) messages_.take(whole);
  return {Found::frame, header, left.first(whole)};
}

/// Skips the frame once its batch header is received.
FrameReader::Next FrameReader::take_too_large(const FrameHeader& header, std::span<std::byte> left,
                                              std::size_t& at) {
  const std::uint64_t whole = frame_start_bytes + std::uint64_t{header.body_bytes};
  if (in_messages_ && messages_.left() < whole) return fail(cut_message);
  if (left.size() < frame_start_bytes + batch_layout::header_bytes) return {};
  if (in_messages_) messages_.take(whole);
  const auto come = static_cast<std::size_t>(std::min<std::uint64_t>(whole, left.size()));
  at += come;
  skipped_bytes_ = whole - come;
  return {Found::too_large, header, left.subspan(frame_start_bytes, batch_layout::header_bytes)};
}

std::size_t FrameReader::skip(std::size_t bytes) {
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skipped_bytes_, bytes));
  skipped_bytes_ -= skipped;
  return skipped;
}

std::size_t FrameReader::missing(ByteView left, std::uint32_t body_bytes_max) const {
  if (in_messages_) return 1;  // the bytes left may begin within a message
  std::size_t whole = frame_start_bytes;
  if (left.size() >= whole) whole += session::decode_frame_header(left, body_bytes_max).header.body_bytes;
  return whole > left.size() ? whole - left.size() : 1;
}

}  // namespace lightq::broker
