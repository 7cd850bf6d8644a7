/// The interface through which the produce and consume sides use their session. Layer: session.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/protocol/session_link.hpp>

#include "access/group_scope.hpp"
#include "admission/turn_work.hpp"
#include "session/channel.hpp"
#include "topic/topic_runtime.hpp"

namespace lightq::broker {

/// SessionConnection implements it; ProduceSide, ConsumeSide and their channels call it. Thread: the
/// reactor's.
class SessionPort {
 public:
  virtual ~SessionPort() = default;

  // Received frames.

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
  void refuse_frame(const session::FrameHeader& header, Channel* channel, const std::string& why) {
    const bool of_session = header.op == session::Op::hello || header.op == session::Op::share;
    if (header.request != 0 && !of_session) return answer_error(header, session::Code::invalid_frame, why);
    if (channel == nullptr) return broken(why);
    end_channel(*channel, session::Code::invalid_frame, why);
  }
  /// Returns the open channel of the right kind that the frame is for. If there is none, sends the necessary
  /// error and returns null.
  virtual Channel* addressee(const session::FrameHeader& header, Channel::Kind kind) = 0;
  /// Returns the topic if a ticket of this session permits the role on the groups in `scope`, else null. Sets
  /// `user` to the user that the use counts for (TicketHolder::sharer).
  virtual TopicRuntime* permitted(const std::string& topic, EndpointRole role, const GroupScope& scope,
                                  std::uint64_t* user = nullptr) = 0;
  /// Returns true if the holder of one of the session's tickets may manage the topic's groups in `scope`.
  [[nodiscard]] virtual bool may_manage(const TopicRuntime& /*topic*/, const GroupScope& /*scope*/) const {
    return false;
  }
  /// Returns the topic, or null if it no longer exists.
  virtual TopicRuntime* find_topic(TopicId topic) = 0;
  /// Returns the longest frame body that the session accepts.
  [[nodiscard]] virtual std::uint32_t body_bytes_max() const = 0;

  // Frames to send.

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
  /// Sends an error as answer_error does, and counts the limit that caused it.
  void answer_limit(const session::FrameHeader& asked, Limit limit, const std::string& why) {
    limit_reached(limit);
    answer_error(asked, session::Code::limit_reached, why);
  }
  virtual void limit_reached(Limit limit) = 0;
  /// Appends a whole frame to the output, which is sent at the end of the turn.
  virtual void append(ByteView frame) = 0;
  /// Sends a frame of messages in two parts. A large second part is passed to the system without copying it.
  virtual void deliver(ByteView head, ByteView rest) = 0;
  /// Ends the session, because there is no memory for something that the client must receive. Nothing more is
  /// sent.
  virtual void out_of_memory_for_output() = 0;
  /// Sends delivered messages at the end of the turn, together with those of other topics.
  virtual void flush() = 0;
  /// Returns true if the output has space.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Returns the longest frame body that the client accepts.
  [[nodiscard]] virtual std::uint32_t client_takes_bytes() const = 0;
  /// Returns the codecs of the compressed batches that the client can read.
  [[nodiscard]] virtual CodecSet client_codecs() const = 0;
  /// Returns true if the client wants to be told of acknowledgements that come too late.
  [[nodiscard]] virtual bool client_hears_late() const { return false; }

  // The session.

  /// Returns true if expensive work may be done now (TurnQueue). Otherwise `go_on` is called when it may.
  virtual bool has_turn() { return true; }
  /// Counts the cost of such work.
  virtual void spend(std::uint64_t /*bytes*/) {}
  /// Schedules a call soon that continues the work that is due.
  virtual void work_soon() = 0;
  /// Stops reading the session, because a channel waits for space.
  virtual void pause_reading() = 0;
  /// Ends a channel that its topic has ended, or that cannot continue. It is destroyed later, not within this
  /// call.
  virtual void end_channel(Channel& channel, session::Code code, const std::string& why) = 0;
  /// Says goodbye and ends the session.
  virtual void end_session(session::Code code, const std::string& why) = 0;
  /// Ends the session, because the client violates the protocol.
  void broken(const std::string& why) { end_session(session::Code::invalid_frame, why); }
  /// Returns true if the broker has said goodbye. Nothing is sent after that.
  [[nodiscard]] virtual bool ending() const = 0;
  /// Returns true if the client has said goodbye.
  [[nodiscard]] virtual bool leaving() const = 0;

 private:
  /// Memory in which a frame is encoded: at most a KiB, kept by each thread.
  static std::vector<std::byte>& frame_memory() {
    static thread_local std::vector<std::byte> bytes;
    return bytes;
  }
};

}  // namespace lightq::broker
