/// What is produced over one session. Layer: session.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "broker/session/channel_book.hpp"
#include "broker/session/channel_numbers.hpp"
#include "broker/session/produce_channel.hpp"
#include "broker/session/session_port.hpp"

namespace lightq::broker {

/// docs/session.md, "Producing". The reactor's thread.
class ProduceSide final : private ProduceChannel::Link {
 public:
  /// Both outlive it.
  ProduceSide(SessionPort& port, ChannelBook& channels) : port_(port), channels_(channels) {}

  void on_open(const session::FrameHeader& header, ByteView body);
  void on_produce(const session::FrameHeader& header, std::span<std::byte> body);
  /// A batch longer than the session takes, of which only the header has come: it is refused.
  void on_too_large(const session::FrameHeader& header, ByteView batch_header);
  /// Where on_produce's body may be put, if nothing else happens before: in the topic's log. Empty: nowhere
  /// but in memory of the caller's own.
  std::span<std::byte> place_for(const session::FrameHeader& header);
  /// An input, or a part of one, has been taken: what was published is to be handed out.
  void after_input();
  void send_confirms();
  /// Ends the channels to topics that the session may not produce to any more.
  void end_unpermitted();
  /// Nothing is confirmed any more.
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
  ChannelNumbers touched_;  // that this input's batches came on
  ChannelNumbers due_;      // with something to confirm
};

}  // namespace lightq::broker
