/// Finds the frames of a session in its input. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/session_frame.hpp>

#include "session/session_carrier.hpp"
#include "session/zmtp_messages.hpp"

namespace lightq::broker {

/// Divides the input of one session into frames, and the messages of a ZeroMQ peer into frames and commands.
/// Checks only headers. Keeps no bytes: incomplete frames stay with the caller. SessionConnection owns it.
/// Thread: the reactor's.
class FrameReader {
 public:
  /// The next part of the input.
  enum class Found {
    nothing,    ///< more bytes must be received first
    frame,      ///< a whole frame
    begun,      ///< the beginning of a frame
    too_large,  ///< a sound produce frame with a longer body than the session accepts, with its batch header
    command,    ///< a command of ZMTP
    fault,      ///< the input cannot be understood
  };
  struct Next {
    Found found = Found::nothing;
    session::FrameHeader header;  ///< of a frame
    std::span<std::byte> bytes;   ///< a frame, as much of it as is there, a batch header, or a command's body
  };

  explicit FrameReader(SessionCarrier carrier) : in_messages_(carrier == SessionCarrier::zmtp) {}

  /// Returns the part of the input at `at`, and moves `at` behind it: behind the header of a message, a whole
  /// frame, a command, or a frame that is too large. Frames may have bodies of up to `body_bytes_max`. Before
  /// the client has `greeted`, only a hello is understood.
  Next next(std::span<std::byte> bytes, std::size_t& at, std::uint32_t body_bytes_max, bool greeted);
  /// Returns the reason of the last `fault`.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  /// Returns true if the last `fault` is an invalid frame header, as peers of other protocols send it.
  [[nodiscard]] bool is_nonsense() const { return is_nonsense_; }
  /// Counts a frame of `bytes` bytes as taken, of which only the beginning is there.
  void take_begun(std::size_t bytes) {
    if (in_messages_) messages_.take(bytes);
  }
  /// Returns how many of `bytes` belong to a frame that is skipped.
  std::size_t skip(std::size_t bytes);
  [[nodiscard]] bool is_skipping() const { return skipped_bytes_ > 0; }
  [[nodiscard]] bool in_messages() const { return in_messages_; }
  /// Returns how many more bytes must follow `left`, at least 1, until a frame can be taken.
  [[nodiscard]] std::size_t missing(ByteView left, std::uint32_t body_bytes_max) const;

 private:
  Next begin_message(std::span<std::byte> bytes, std::size_t& at);
  Next fail(std::string why, bool is_nonsense = false);
  Next take_too_large(const session::FrameHeader& header, std::span<std::byte> left, std::size_t& at);

  const bool in_messages_;
  ZmtpMessages messages_;
  std::uint64_t skipped_bytes_ = 0;  // still to come of a frame that is skipped
  std::string fault_;
  bool is_nonsense_ = false;
};

}  // namespace lightq::broker
