/// Connects to nats-server. Layer: bench peers.
#include "peers/nats/nats_connection.hpp"

#include <stdexcept>
#include <string>

namespace lightq::bench {

void check_nats(natsStatus status, const char* what) {
  if (status == NATS_OK) return;
  const char* const last = nats_GetLastError(nullptr);
  throw std::runtime_error("NATS, " + std::string(what) + ": " + natsStatus_GetText(status) +
                           (last != nullptr && *last != '\0' ? ", " + std::string(last) : ""));
}

NatsOwner<natsConnection> connect_nats(std::uint16_t port) {
  natsOptions* options = nullptr;
  check_nats(natsOptions_Create(&options), "options");
  const NatsOwner<natsOptions> owned(options);
  const std::string url = "nats://127.0.0.1:" + std::to_string(port);
  check_nats(natsOptions_SetURL(options, url.c_str()), "address");
  check_nats(natsOptions_SetAllowReconnect(options, false), "options");
  check_nats(natsOptions_SetTimeout(options, peer_patience.count()), "options");
  natsConnection* connection = nullptr;
  check_nats(natsConnection_Connect(&connection, options), "connecting");
  return NatsOwner<natsConnection>(connection);
}

ByteView bytes_of(const natsMsg& message) {
  return {reinterpret_cast<const std::byte*>(natsMsg_GetData(&message)),
          static_cast<std::size_t>(natsMsg_GetDataLength(&message))};
}

}  // namespace lightq::bench
