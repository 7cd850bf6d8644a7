/// The producing half of a session. Layer: session.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "session/channel_book.hpp"
#include "session/channel_numbers.hpp"
#include "session/produce_channel.hpp"
#include "session/session_port.hpp"

namespace lightq::broker {

/// Handles the frames of producers. docs/session.md, "Producing".
/// SessionConnection owns it and calls it. The channels are in ChannelBook. Thread: the reactor's.
class ProduceSide final : private ProduceChannel::Link {
 public:
  /// Lifetime: both outlive it.
  ProduceSide(SessionPort& port, ChannelBook& channels) : port_(port), channels_(channels) {}

  void on_open(const session::FrameHeader& header, ByteView body);
  void on_produce(const session::FrameHeader& header, std::span<std::byte> body);
  /// Refuses a batch that is longer than the session accepts. Only the batch's header was received.
  void on_too_large(const session::FrameHeader& header, ByteView batch_header);
  /// Returns memory in the topic's log for the body that on_produce is called with next. Requires: nothing
  /// else happens before. Returns an empty span if the caller must use its own memory.
  std::span<std::byte> place_for(const session::FrameHeader& header);
  /// Dispatches published messages. Called after an input, or a part of one, was handled.
  void after_input();
  void send_confirms();
  /// Ends channels to topics that the session may no longer produce to.
  void end_unpermitted();
  /// Drops all confirms that are due.
  void drop_confirms() { due_.clear(); }

 private:
  void channel_opened(ProduceChannel& channel, const session::ProduceOpened& answer) override;
  void confirm_due(ProduceChannel& channel) override;
  void refuse(ProduceChannel& channel, const session::Refuse& refused) override;
  void channel_held(ProduceChannel& channel) override;
  void channel_resumed(ProduceChannel& channel) override;
  void channel_ended(ProduceChannel& channel, session::Code code, const std::string& why) override;
  [[nodiscard]] ProduceChannel* find(std::uint32_t number) const;

  SessionPort& port_;
  ChannelBook& channels_;
  ChannelNumbers touched_;  // that received batches in this input
  ChannelNumbers due_;      // with a confirm to send
};

}  // namespace lightq::broker
