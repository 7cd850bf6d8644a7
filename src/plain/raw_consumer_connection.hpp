/// The connection of a raw consumer: a plain socket that receives lengths and payloads. Layer: plain.
#pragma once

#include "admission/fair_share.hpp"
#include "plain/plain_consumer_connection.hpp"

namespace lightq::broker {

/// Sends messages to a raw consumer. docs/protocol.md, "Raw socket consumers", describes the stream. There is
/// no handshake: the consumer receives messages as soon as it is connected. If it sends anything, its
/// connection ends. Thread: the reactor's.
class RawConsumerConnection final : public PlainConsumerConnection {
 public:
  using PlainConsumerConnection::PlainConsumerConnection;
  /// Returns the user number that all clients without a user share. A raw consumer cannot say which user it
  /// is.
  [[nodiscard]] std::uint64_t held_by() const override { return FairShare::anonymous; }

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override { return std::nullopt; }
  void on_open() override { set_ready(true); }
  void encode(ByteView payload) override;
  std::size_t consume(std::span<std::byte> bytes) override;
};

}  // namespace lightq::broker
