/// The interface through which frames are sent to a session's client. Layer: session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lightq/base/codec.hpp>
#include <lightq/protocol/session_link.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

/// Takes the frames of one session. SessionOutput implements it; a test keeps the frames instead. The
/// channels and reads of the session call it. Thread: the reactor's.
class FrameOutput {
 public:
  FrameOutput() = default;
  FrameOutput(const FrameOutput&) = delete;
  FrameOutput& operator=(const FrameOutput&) = delete;
  virtual ~FrameOutput() = default;

  template <typename Frame>
  void send(const Frame& frame, std::uint32_t channel, std::uint32_t request) {
    std::vector<std::byte>& bytes = frame_memory();
    session::encode_frame(bytes, frame, channel, request);
    append(bytes);
  }
  /// Sends an error in reply to a request, or to the channel if the frame was no request.
  void answer_error(const session::FrameHeader& asked, session::Code code, const std::string& why) {
    TurnWork::add(TurnWork::refusal_made);
    send(session::ErrorAnswer{code, why}, asked.channel, asked.request);
  }

  /// Appends a whole frame to the output, which is sent at the end of the turn.
  virtual void append(ByteView frame) = 0;
  /// Sends a frame of messages in two parts. A large second part is passed to the system without copying it.
  virtual void deliver(ByteView head, ByteView rest) = 0;
  /// Ends the session, because there is no memory for something that the client must receive. Nothing more is
  /// sent.
  virtual void out_of_memory_for_output() = 0;
  /// Returns true if the output has space.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Returns the longest frame body that the client accepts.
  [[nodiscard]] virtual std::uint32_t client_takes_bytes() const = 0;
  /// Returns the codecs of the compressed batches that the client can read.
  [[nodiscard]] virtual CodecSet client_codecs() const = 0;

 private:
  /// Memory in which a frame is encoded: at most a KiB, kept by each thread.
  static std::vector<std::byte>& frame_memory() {
    static thread_local std::vector<std::byte> bytes;
    return bytes;
  }
};

}  // namespace lightq::broker
