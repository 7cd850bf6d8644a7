/// A raw consumer's connection: a plain socket that receives lengths and payloads. Layer: endpoint.
#pragma once

#include "broker/delivery/fair_share.hpp"
#include "broker/endpoint/outlet_connection.hpp"

namespace lightq::broker {

/// The stream is docs/protocol.md, "Raw socket consumers". There is no handshake: a consumer takes messages
/// from its first moment on, and is cut if it sends anything. The reactor's thread.
class RawOutlet final : public OutletConnection {
 public:
  using OutletConnection::OutletConnection;
  /// It has no way to say whose it is.
  [[nodiscard]] std::uint64_t held_by() const override { return FairShare::strangers; }

 protected:
  [[nodiscard]] std::optional<ZmtpHandshake> make_handshake() const override { return std::nullopt; }
  void on_open() override { set_ready(true); }
  void encode(ByteView payload) override;
  std::size_t consume(std::span<std::byte> bytes) override;
};

}  // namespace lightq::broker
