/// Session frames as the ZeroMQ messages that they leave in. docs/session.md, "Transport". Layer: client.
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

/// Puts the header of a message before each frame, which stays where it lies. A message is one frame: whoever
/// sends may think better of a frame that has not begun, and never of the rest of one that has. No I/O. One
/// thread.
class ZmtpFraming {
 public:
  /// Names what is to be sent next of `frames`, but for their first `skipped` bytes: first the rest of the
  /// frame that has begun, if one has, then whole ones. Not more than a call of the system takes; valid until
  /// the next call, as long as `frames`.
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
  /// How many bytes the last `gather` has named.
  [[nodiscard]] std::size_t gathered_bytes() const { return bytes_; }
  /// So many of them have left: answers how many of the frames' own they were. Where the last of them are a
  /// header's, the rest of it and its frame's first byte are appended to `output`, to leave before all else:
  /// then that frame has begun, too.
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
  /// A frame has begun, so that nothing else may come before its rest.
  [[nodiscard]] bool in_midst() const { return unfinished_ > 0; }

 private:
  struct Message {
    std::array<std::byte, zmtp::frame_header_bytes_max> header;
    std::byte first;  // of its frame
    std::size_t header_bytes;
    std::size_t body_bytes;
  };

  /// Somewhere in the frames.
  class Place {
   public:
    explicit Place(std::span<const iovec> parts) : parts_(parts) { skip(0); }
    [[nodiscard]] bool done() const { return parts_.empty(); }
    /// What lies here in one piece; not empty.
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
    std::size_t offset_ = 0;  // in the first of them
  };

  /// All of the frame that begins here.
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

  /// Names the next bytes, at most so many, as far as there are parts; answers how many.
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

  std::array<iovec, 128> parts_;  // the first parts_used_
  std::size_t parts_used_ = 0;
  std::array<Message, 48> messages_;  // those that begin in them: the first messages_used_
  std::size_t messages_used_ = 0;
  std::size_t bytes_ = 0;       // of all the parts
  std::size_t rest_ = 0;        // of these, the begun frame's
  std::size_t unfinished_ = 0;  // bytes of it that have not left
};

}  // namespace lightq::inline v1
