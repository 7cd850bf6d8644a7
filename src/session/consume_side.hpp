/// The consuming half of a session. Layer: session.
#pragma once

#include <cstdint>
#include <vector>

#include "session/channel_book.hpp"
#include "session/consume_channel.hpp"
#include "session/read_queue.hpp"
#include "session/session_port.hpp"

namespace lightq::broker {

/// Handles the frames of consumers and reads. docs/session.md, "Consuming".
/// SessionConnection owns it and calls it. The channels are in ChannelBook, the reads here. Thread: the
/// reactor's.
class ConsumeSide final : private ConsumeChannel::Link {
 public:
  /// Lifetime: both outlive it.
  ConsumeSide(SessionPort& port, ChannelBook& channels, const ReadLimits& read_limits)
      : port_(port), channels_(channels), reads_(port, read_limits) {}

  void on_open(const session::FrameHeader& header, ByteView body);
  void on_read(const session::FrameHeader& header, ByteView body);
  /// Handles credit, acknowledge, reject, extend and seek.
  void on_channel_frame(const session::FrameHeader& header, ByteView body);

  /// Returns true if a channel or a read waits for space to send.
  [[nodiscard]] bool wants_room() const { return room_wanted_ || reads_.wants_room(); }
  /// Continues the channels and reads that waited for space.
  void go_on();
  /// Stops delivery on a channel that is being closed.
  void retire(std::uint32_t number);
  /// Returns true if the client has messages in flight that are not overdue.
  [[nodiscard]] bool has_in_flight() const;
  /// Leaves all topics, because the client said goodbye. Its unacknowledged messages go to other consumers.
  void leave();
  /// Ends channels and reads of topics that the session may no longer consume.
  void end_unpermitted();
  /// Returns true if all reads are answered.
  [[nodiscard]] bool settled() const { return reads_.is_empty(); }
  void drop_reads() { reads_.drop_all(); }

 private:
  void channel_opened(ConsumeChannel& channel, const session::ConsumeOpened& answer) override;
  void room_wanted() override { room_wanted_ = true; }
  void message_too_large(ConsumeChannel& channel) override;
  void on_credit(ConsumeChannel& channel, const session::FrameHeader& header, ByteView body);
  void on_acknowledge(ConsumeChannel& channel, const session::FrameHeader& header, ByteView body);
  void on_reject(ConsumeChannel& channel, const session::FrameHeader& header, ByteView body);
  void on_extend(ConsumeChannel& channel, const session::FrameHeader& header, ByteView body);
  bool keeps_too_long(ConsumeChannel& channel, std::uint64_t ms);
  void on_seek(ConsumeChannel& channel, const session::FrameHeader& header, ByteView body);
  void end_too_large();
  [[nodiscard]] ConsumeChannel* find(std::uint32_t number) const;

  SessionPort& port_;
  ChannelBook& channels_;
  ReadQueue reads_;
  bool room_wanted_ = false;              // one of the channels waits for space
  std::vector<std::uint32_t> too_large_;  // channels that must end
};

}  // namespace lightq::broker
