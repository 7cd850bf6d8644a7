/// What producing and consuming need of the session that they are done over. Layer: session.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/protocol/session_link.hpp>

#include "broker/delivery/turn_work.hpp"
#include "broker/endpoint/group_scope.hpp"
#include "broker/endpoint/hosted_topic.hpp"
#include "broker/session/channel.hpp"

namespace lightq::broker {

/// The reactor's thread.
class SessionPort {
 public:
  virtual ~SessionPort() = default;

  // Frames that have come.

  /// What the frame says; nothing if a field is not as it must be: see refuse_frame. `channel`: the one that
  /// the frame is for, if it is no request.
  template <typename Frame>
  std::optional<Frame> decode(const session::FrameHeader& header, ByteView body, Channel* channel = nullptr) {
    auto decoded = Frame::decode(body, header.flags);
    if (decoded) return std::move(*decoded);
    refuse_frame(header, channel,
                 std::string(session::rule_of(header.op).name) + ": " + decoded.error().message);
    return std::nullopt;
  }
  /// Ends what a frame concerns that came whole and says what it must not: the request, or the channel; the
  /// session only if it is about the session itself.
  void refuse_frame(const session::FrameHeader& header, Channel* channel, const std::string& why) {
    const bool of_session = header.op == session::Op::hello || header.op == session::Op::share;
    if (header.request != 0 && !of_session) return answer_error(header, session::Code::invalid_frame, why);
    if (channel == nullptr) return broken(why);
    end_channel(*channel, session::Code::invalid_frame, why);
  }
  /// The channel that the frame is for, of the right kind; null: there is none that takes it, and what is to
  /// be said of that has been said.
  virtual Channel* addressee(const session::FrameHeader& header, Channel::Kind kind) = 0;
  /// The topic, if a ticket of this session permits that with such groups of it; else null. `user`: is told
  /// whose places it takes (TicketHolder::sharer).
  virtual HostedTopic* permitted(const std::string& topic, EndpointRole role, const GroupScope& scope,
                                 std::uint64_t* user = nullptr) = 0;
  /// A ticket of this session belongs to somebody who may manage such groups of the topic.
  [[nodiscard]] virtual bool may_manage(const HostedTopic& /*topic*/, const GroupScope& /*scope*/) const {
    return false;
  }
  /// Null: it is not there any more.
  virtual HostedTopic* find_topic(TopicId topic) = 0;
  /// The longest body of a frame that is taken.
  [[nodiscard]] virtual std::uint32_t body_bytes_max() const = 0;

  // Frames that go.

  template <typename Frame>
  void send(const Frame& frame, std::uint32_t channel, std::uint32_t request) {
    std::vector<std::byte>& bytes = frame_memory();
    session::encode_frame(bytes, frame, channel, request);
    append(bytes);
  }
  /// To a request; or, where nothing was asked, to the channel.
  void answer_error(const session::FrameHeader& asked, session::Code code, const std::string& why) {
    TurnWork::add(TurnWork::refusal_made);
    send(session::ErrorAnswer{code, why}, asked.channel, asked.request);
  }
  /// Likewise, where a limit is the reason, which is counted.
  void answer_limit(const session::FrameHeader& asked, Limit limit, const std::string& why) {
    limit_reached(limit);
    answer_error(asked, session::Code::limit_reached, why);
  }
  virtual void limit_reached(Limit limit) = 0;
  /// A whole frame, which leaves at the end of the turn.
  virtual void append(ByteView frame) = 0;
  /// A frame of messages, in two pieces: a large second one goes to the system straight from where it lies.
  virtual void deliver(ByteView head, ByteView rest) = 0;
  /// There is no memory for what the client is owed: its session ends, and nothing comes behind it.
  virtual void out_of_memory_for_output() = 0;
  /// What was delivered leaves at the end of the turn, with that of other topics.
  virtual void flush() = 0;
  /// Little enough waits for the client.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// The longest body that the client takes.
  [[nodiscard]] virtual std::uint32_t client_takes_bytes() const = 0;
  /// Of compressed batches, which the client can read.
  [[nodiscard]] virtual CodecSet client_codecs() const = 0;
  /// The client wants to be told what it acknowledges too late.
  [[nodiscard]] virtual bool client_hears_late() const { return false; }

  // The session.

  /// Returns true if work that costs much may be done now (TurnQueue); else go_on is called when it may.
  virtual bool has_turn() { return true; }
  /// What such work has cost.
  virtual void spend(std::uint64_t /*bytes*/) {}
  /// Comes back to what is due, soon.
  virtual void work_soon() = 0;
  /// Nothing is read for now: a channel is held.
  virtual void pause_reading() = 0;
  /// The topic has ended the channel, or it cannot go on; it is destroyed later, not within the call.
  virtual void end_channel(Channel& channel, session::Code code, const std::string& why) = 0;
  /// Says goodbye.
  virtual void end_session(session::Code code, const std::string& why) = 0;
  /// The client does not keep to the protocol; the session ends.
  void broken(const std::string& why) { end_session(session::Code::invalid_frame, why); }
  /// Goodbye has been said: nothing comes behind it.
  [[nodiscard]] virtual bool ending() const = 0;
  /// The client has said goodbye.
  [[nodiscard]] virtual bool leaving() const = 0;

 private:
  /// Where a frame is put together: a KiB at most, which each thread keeps.
  static std::vector<std::byte>& frame_memory() {
    static thread_local std::vector<std::byte> bytes;
    return bytes;
  }
};

}  // namespace lightq::broker
