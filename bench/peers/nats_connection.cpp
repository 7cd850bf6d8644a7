/// Starts nats-server and connects to it. Layer: bench peers.
#include "peers/nats_connection.hpp"

#include <nats/version.h>

#include <fstream>
#include <stdexcept>

namespace lightq::bench {
namespace {

/// Returns the configuration beside port and directory. The limits let a consumer lag instead of losing
/// messages or its connection.
std::string settings_for(bool jetstream, Storage storage, const std::string& directory) {
  std::string text = storage == Storage::standard ? "" : "max_pending: 1GB\nwrite_deadline: \"60s\"\n";
  if (!jetstream) return text;
  text += "jetstream {\n  store_dir: \"" + directory + "\"\n";
  if (storage == Storage::synced) text += "  sync_interval: always\n";
  return text + "}\n";
}

}  // namespace

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

NatsPeerServer::NatsPeerServer(const std::string& program, bool jetstream, Storage storage)
    : OneProcessServer([&](std::uint16_t port, const std::string& directory) {
        const std::string path = directory + "/nats.conf";
        std::ofstream(path) << settings_for(jetstream, storage, directory);
        return std::vector<std::string>{program,    "--addr", "127.0.0.1", "--port", std::to_string(port),
                                        "--config", path};
      }) {
  for (const char letter : settings_for(jetstream, storage, "DIR"))
    settings_ += letter == '\n' ? ' ' : letter;
  if (!settings_.empty()) settings_ = " with " + settings_.substr(0, settings_.size() - 1);
}

std::optional<std::string> NatsPeer::version() const {
  const auto server = program();
  if (!server) return std::nullopt;
  const std::string text = output_of({*server, "--version"});
  return text.substr(0, text.find('\n')) + ", nats.c " NATS_VERSION_STRING;
}

}  // namespace lightq::bench
