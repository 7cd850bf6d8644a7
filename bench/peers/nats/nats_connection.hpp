/// Connections to nats-server with nats.c. Layer: bench peers.
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <memory>

#include "peers/peer.hpp"

namespace lightq::bench {

/// Throws std::runtime_error unless `status` is NATS_OK.
void check_nats(natsStatus status, const char* what);

struct FreeNats {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
  void operator()(natsConnection* connection) const { natsConnection_Destroy(connection); }
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
  void operator()(jsCtx* context) const { jsCtx_Destroy(context); }
};
template <typename T>
using NatsOwner = std::unique_ptr<T, FreeNats>;

/// Connects to a port of 127.0.0.1, with unlimited subscriptions and no attempts to reconnect.
NatsOwner<natsConnection> connect_nats(std::uint16_t port);

ByteView bytes_of(const natsMsg& message);

}  // namespace lightq::bench
