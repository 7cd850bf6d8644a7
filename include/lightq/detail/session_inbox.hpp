/// Splits a stream of bytes into session frames. docs/session.md, "The frame". Layer: client.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/session_frame.hpp>

namespace lightq::inline v1 {

/// A received frame. Lifetime: a view into the inbox that returned it.
struct SessionFrame {
  session::FrameHeader header;
  ByteView body;
};

/// The received bytes of a stream that are not used yet. Its memory grows with the bytes received, never with
/// an announced length, up to twice the longest frame. For one thread.
class SessionInbox {
 public:
  static constexpr std::size_t read_bytes_least = 2048;

  /// `body_bytes_max` is the longest body accepted; `read_bytes` the least size of `room`.
  explicit SessionInbox(std::uint32_t body_bytes_max, std::size_t read_bytes = read_bytes_least)
      : body_bytes_max_(body_bytes_max), read_bytes_(std::max(read_bytes, read_bytes_least)) {}

  /// Returns the space for the next bytes; never empty. Invalidates the frames returned before.
  std::span<std::byte> room() {
    if (begin_ == end_) begin_ = end_ = looked_ = 0;
    if (buffer_.size() - end_ < read_bytes_) make_room();
    return std::span(buffer_).subspan(end_);
  }
  /// Returns the space behind all bytes. It may be empty. The frames returned before stay valid.
  [[nodiscard]] std::span<std::byte> room_behind() { return std::span(buffer_).subspan(end_); }
  /// Records that `bytes` were written to `room` or `room_behind`.
  void add(std::size_t bytes) {
    assert(bytes <= buffer_.size() - end_);
    end_ += bytes;
  }

  /// Returns the next frame; nothing if it is incomplete. Errors: invalid_request, after which the stream
  /// cannot be read.
  Result<std::optional<SessionFrame>> next() {
    const ByteView left = ByteView(buffer_).subspan(begin_, end_ - begin_);
    if (left.size() < session::frame_layout::header_bytes) return std::optional<SessionFrame>();
    const auto [fault, header] = session::decode_frame_header(left, body_bytes_max_);
    if (fault) return broken(*fault);
    const std::size_t whole = session::frame_layout::header_bytes + header.body_bytes;
    if (left.size() < whole) return std::optional<SessionFrame>();
    if (!session::frame_crc_fits(left, header)) return broken(session::FrameFault::bad_crc);
    begin_ += whole;
    looked_ -= std::min(looked_, whole);
    return std::optional(
        SessionFrame{header, left.first(whole).subspan(session::frame_layout::header_bytes)});
  }

  /// Calls `look(const SessionFrame&)` for each whole frame with this operation that waits behind the last
  /// frame taken, unless an earlier call has. Does not take the frames. Stops at bytes that are not a frame.
  template <typename Look>
  void look_ahead(session::Op op, Look&& look) {
    while (true) {
      const ByteView left = ByteView(buffer_).subspan(begin_ + looked_, end_ - begin_ - looked_);
      if (left.size() < session::frame_layout::header_bytes) return;
      const auto [fault, header] = session::decode_frame_header(left, body_bytes_max_);
      const std::size_t whole = session::frame_layout::header_bytes + header.body_bytes;
      if (fault || left.size() < whole) return;
      if (header.op == op && session::frame_crc_fits(left, header))
        look(SessionFrame{header, left.first(whole).subspan(session::frame_layout::header_bytes)});
      looked_ += whole;
    }
  }
  [[nodiscard]] std::size_t unused_bytes() const { return end_ - begin_; }
  /// Returns the memory, in which the frames returned before stay valid, and keeps the unused bytes in new
  /// memory.
  std::vector<std::byte> part_with_memory() {
    std::vector<std::byte> fresh(unused_bytes() + 2 * read_bytes_);
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), unused_bytes(), fresh.begin());
    end_ -= begin_;
    begin_ = 0;
    return std::exchange(buffer_, std::move(fresh));
  }

  /// Drops all bytes and keeps the memory.
  void clear() { begin_ = end_ = looked_ = 0; }
  /// Drops all bytes and returns the memory. Frames returned before stay valid as long as it exists.
  std::vector<std::byte> give_memory() {
    clear();
    return std::exchange(buffer_, {});
  }
  [[nodiscard]] std::size_t memory_bytes() const { return buffer_.capacity(); }

 private:
  static Error broken(session::FrameFault fault) {
    return {ErrorCode::invalid_request, "the broker sent an invalid frame: " + std::string(to_word(fault))};
  }

  void make_room() {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() - end_ < read_bytes_) buffer_.resize(std::max(2 * buffer_.size(), 2 * read_bytes_));
  }

  std::uint32_t body_bytes_max_;
  std::size_t read_bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // of the unused bytes
  std::size_t end_ = 0;
  std::size_t looked_ = 0;  // unused bytes that look_ahead has passed
};

}  // namespace lightq::inline v1
