/// Wraps session frames into ZeroMQ messages for sending. docs/session.md, "Transport". Layer: client.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lightq/base/bytes.hpp>
#include <lightq/protocol/session_frame.hpp>
#include <lightq/protocol/zmtp.hpp>

namespace lightq::inline v1 {

/// Adds a message header in front of each session frame, without copying the frame. A message is one frame.
/// The sender may still replace a frame as long as none of its bytes was sent. After the first byte, the rest
/// of the frame must follow. Does no I/O. For one thread.
class ZmtpFraming {
 public:
  /// Returns the next parts to send of `frames`, without their first `skipped` bytes. The rest of the frame
  /// that was sent in part comes first, then whole frames. Returns at most as many parts as one system call
  /// takes. Lifetime: valid until the next call, and as long as `frames`.
  std::span<iovec> gather(std::span<const iovec> frames, std::size_t skipped) {
    parts_used_ = messages_used_ = bytes_ = 0;
    Place at(frames);
    at.skip(skipped);
    rest_ = put(at, unfinished_);
    while (!at.done() && messages_used_ < messages_.size() && parts_used_ + 2 <= parts_.size()) {
      Message& message = messages_[messages_used_++];
      message.body_bytes = frame_bytes(at);
      message.first = at.here().front();
      message.header_bytes = zmtp::encode_frame_header(message.header.data(), message.body_bytes, false);
      parts_[parts_used_++] = {message.header.data(), message.header_bytes};
      bytes_ += message.header_bytes;
      put(at, message.body_bytes);
    }
    return std::span(parts_).first(parts_used_);
  }
  /// Returns how many bytes the last `gather` has returned.
  [[nodiscard]] std::size_t gathered_bytes() const { return bytes_; }
  /// Records that `bytes` of them were sent. Returns how many of these were bytes of frames. If they end
  /// within a message header, its rest and the first byte of its frame are appended to `output`. The caller
  /// must send `output` before anything else, because that frame then counts as sent in part.
  std::size_t sent(std::size_t bytes, std::vector<std::byte>& output) {
    assert(bytes <= bytes_);
    std::size_t taken = std::min(bytes, rest_);
    bytes -= taken;
    unfinished_ -= taken;
    for (std::size_t at = 0; bytes > 0; ++at) {
      const Message& message = messages_[at];
      if (bytes <= message.header_bytes) {
        const auto header = message.header.begin();
        output.insert(output.end(), header + static_cast<std::ptrdiff_t>(bytes),
                      header + static_cast<std::ptrdiff_t>(message.header_bytes));
        output.push_back(message.first);
        unfinished_ = message.body_bytes - 1;
        return taken + 1;
      }
      bytes -= message.header_bytes;
      const std::size_t of_body = std::min(bytes, message.body_bytes);
      bytes -= of_body;
      taken += of_body;
      unfinished_ = message.body_bytes - of_body;
    }
    return taken;
  }
  /// Returns true if a frame was sent in part, so that its rest must come next.
  [[nodiscard]] bool in_midst() const { return unfinished_ > 0; }

 private:
  struct Message {
    std::array<std::byte, zmtp::frame_header_bytes_max> header;
    std::byte first;  // of the frame
    std::size_t header_bytes;
    std::size_t body_bytes;
  };

  /// A position in the frames.
  class Place {
   public:
    explicit Place(std::span<const iovec> parts) : parts_(parts) { skip(0); }
    [[nodiscard]] bool done() const { return parts_.empty(); }
    /// Returns the contiguous bytes at this position; not empty.
    [[nodiscard]] std::span<std::byte> here() const {
      return std::span(static_cast<std::byte*>(parts_[0].iov_base), parts_[0].iov_len).subspan(offset_);
    }
    void skip(std::size_t bytes) {
      offset_ += bytes;
      while (!parts_.empty() && offset_ >= parts_[0].iov_len) {
        offset_ -= parts_[0].iov_len;
        parts_ = parts_.subspan(1);
      }
    }

   private:
    std::span<const iovec> parts_;
    std::size_t offset_ = 0;  // in the first part
  };

  /// Returns the size of the frame that begins here.
  static std::size_t frame_bytes(Place at) {
    std::array<std::byte, session::frame_layout::header_bytes> header{};
    std::size_t used = 0;
    while (used < header.size() && !at.done()) {
      const auto piece = at.here().first(std::min(at.here().size(), header.size() - used));
      std::copy(piece.begin(), piece.end(), header.begin() + static_cast<std::ptrdiff_t>(used));
      used += piece.size();
      at.skip(piece.size());
    }
    assert(used == header.size());
    return header.size() +
           load_little_endian<std::uint32_t>(header.data() + session::frame_layout::body_bytes);
  }

  /// Adds up to `bytes` bytes to the parts, as far as there are free parts, and returns how many.
  std::size_t put(Place& at, std::size_t bytes) {
    std::size_t named = 0;
    while (named < bytes && !at.done() && parts_used_ < parts_.size()) {
      const auto piece = at.here().first(std::min(at.here().size(), bytes - named));
      parts_[parts_used_++] = {piece.data(), piece.size()};
      named += piece.size();
      at.skip(piece.size());
    }
    bytes_ += named;
    return named;
  }

  std::array<iovec, 128> parts_;  // the first parts_used_ are in use
  std::size_t parts_used_ = 0;
  std::array<Message, 48> messages_;  // messages that begin in the parts; the first messages_used_ are in use
  std::size_t messages_used_ = 0;
  std::size_t bytes_ = 0;       // in all parts
  std::size_t rest_ = 0;        // of these, bytes of the frame that was sent in part
  std::size_t unfinished_ = 0;  // bytes of that frame not sent yet
};

}  // namespace lightq::inline v1
