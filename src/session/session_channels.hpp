/// The channels of a session: the frames that are for them, and their beginning and end. Layer: session.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <lightq/protocol/session_link.hpp>

#include "session/channel_book.hpp"
#include "session/session_life.hpp"
#include "session/session_output.hpp"

namespace lightq::broker {

/// Finds the channel that a frame is for, refuses frames, and begins and ends channels, with the replies that
/// the client needs. The session, its produce and consume sides and their channels call it. Thread: the
/// reactor's.
class SessionChannels {
 public:
  /// Lifetime: all outlive it.
  SessionChannels(ChannelBook& book, SessionOutput& output, SessionLife& life)
      : book_(book), output_(output), life_(life) {}

  [[nodiscard]] ChannelBook& book() { return book_; }
  [[nodiscard]] SessionOutput& output() { return output_; }
  [[nodiscard]] SessionLife& life() { return life_; }

  /// Returns the open channel of the right kind that the frame is for. If there is none, sends the necessary
  /// error and returns null.
  Channel* addressee(const session::FrameHeader& header, Channel::Kind kind);
  /// Returns the decoded frame. If a field is invalid, calls refuse_frame and returns nothing. `channel` is
  /// the channel of a frame that is not a request.
  template <typename Frame>
  std::optional<Frame> decode(const session::FrameHeader& header, ByteView body, Channel* channel = nullptr) {
    auto decoded = Frame::decode(body, header.flags);
    if (decoded) return std::move(*decoded);
    refuse_frame(header, channel,
                 std::string(session::rule_of(header.op).name) + ": " + decoded.error().message);
    return std::nullopt;
  }
  /// Refuses a complete frame with invalid content. Answers its request with an error, or ends its channel.
  /// Ends the session only if the frame has neither, or is about the session itself.
  void refuse_frame(const session::FrameHeader& header, Channel* channel, const std::string& why);

  /// Answers the request that opened the channel, which may begin now.
  template <typename Opened>
  void begin(const Channel& channel, const Opened& answer) {
    if (life_.is_ending()) return;
    output_.send(answer, channel.number(), book_.take_opening(channel.number()));
    life_.work_soon();
  }
  /// Handles a `close` frame of the client. Returns true if its channel is closing now.
  bool close(const session::FrameHeader& header);
  /// Answers the `close` frames of channels that are settled by now.
  void answer_closed();
  /// Ends a channel that its topic has ended, or that cannot continue. It is destroyed later, not within this
  /// call.
  void end(Channel& channel, session::Code code, const std::string& why);
  /// Counts a channel that begins to wait for space. The session is not read until `note_resumed`.
  void note_held() {
    if (!life_.is_ending()) book_.count_held();
  }
  void note_resumed() {
    if (life_.is_ending()) return;
    book_.count_resumed();
    life_.work_soon();
  }

 private:
  ChannelBook& book_;
  SessionOutput& output_;
  SessionLife& life_;
};

}  // namespace lightq::broker
