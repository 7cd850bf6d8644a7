/// What is consumed over one session. Layer: session.
#pragma once

#include <cstdint>
#include <vector>

#include "broker/session/channel_book.hpp"
#include "broker/session/consume_channel.hpp"
#include "broker/session/read_queue.hpp"
#include "broker/session/session_port.hpp"

namespace lightq::broker {

/// docs/session.md, "Consuming". The reactor's thread.
class ConsumeSide final : private ConsumeChannel::Link {
 public:
  /// Both outlive it.
  ConsumeSide(SessionPort& port, ChannelBook& channels, const ReadLimits& read_limits)
      : port_(port), channels_(channels), reads_(port, read_limits) {}

  void on_open(const session::FrameHeader& header, ByteView body);
  void on_read(const session::FrameHeader& header, ByteView body);
  /// credit, acknowledge, reject, extend, seek.
  void on_channel_frame(const session::FrameHeader& header, ByteView body);

  /// Something waits for room.
  [[nodiscard]] bool wants_room() const { return room_wanted_ || !reads_.is_empty(); }
  /// There is room: what waited for it goes on.
  void go_on();
  /// Nothing more is delivered on a channel that is being closed.
  void retire(std::uint32_t number);
  /// Returns true if the client has messages whose time to be acknowledged is not over.
  [[nodiscard]] bool has_in_flight() const;
  /// The client goes: what it has not acknowledged is for others.
  void leave();
  /// Ends the channels and reads of topics that the session may not consume any more.
  void end_unpermitted();
  /// Everything that was to be read has been.
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
  bool room_wanted_ = false;              // by one of the channels
  std::vector<std::uint32_t> too_large_;  // channels that cannot go on
};

}  // namespace lightq::broker
