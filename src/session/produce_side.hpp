/// The producing half of a session. Layer: session.
#pragma once

#include <cstdint>
#include <span>

#include "session/channel_numbers.hpp"
#include "session/produce_channel.hpp"
#include "session/session_channels.hpp"
#include "session/session_tickets.hpp"

namespace lightq::broker {

/// Handles the frames of producers. docs/session.md, "Producing". Opens their channels, dispatches the
/// messages of an input, and sends the confirms that are due.
/// SessionConnection owns it and calls it. The channels are in ChannelBook. Thread: the reactor's.
class ProduceSide {
 public:
  /// Lifetime: both outlive it.
  ProduceSide(SessionChannels& session, SessionTickets& tickets) : session_(session), tickets_(tickets) {}
  ProduceSide(const ProduceSide&) = delete;
  ProduceSide& operator=(const ProduceSide&) = delete;

  /// `batch_bytes_max`: the longest batch that the session accepts.
  void on_open(const session::FrameHeader& header, ByteView body, std::uint64_t batch_bytes_max);
  void on_produce(const session::FrameHeader& header, std::span<std::byte> body);
  /// Refuses a batch that is longer than the session accepts. Only the batch's header was received.
  void on_too_large(const session::FrameHeader& header, ByteView batch_header);
  /// Returns memory in the topic's log for the body that on_produce is called with next. Requires: nothing
  /// else happens before. Returns an empty span if the caller must use its own memory.
  std::span<std::byte> place_for(const session::FrameHeader& header);
  /// Dispatches the messages that were published, and sends the confirms that are due. Called after an input,
  /// or a part of one, was handled.
  void after_input();
  /// Sends the confirms that are due, if the output has space for them.
  void send_confirms();
  /// Ends channels to topics that the session may no longer produce to.
  void end_unpermitted();
  /// Drops all confirms that are due.
  void drop_confirms() { due_.clear(); }

 private:
  [[nodiscard]] ProduceChannel* find(std::uint32_t number) const;

  SessionChannels& session_;
  SessionTickets& tickets_;
  ChannelNumbers touched_;  // that received batches in this input
  ChannelNumbers due_;      // with a confirm to send
};

}  // namespace lightq::broker
