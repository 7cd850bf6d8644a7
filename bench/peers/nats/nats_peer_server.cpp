/// Starts nats-server. Layer: bench peers.
#include "peers/nats/nats_peer_server.hpp"

#include "support/servers/nats_server.hpp"

namespace lightq::bench {
namespace {

NatsSettings settings_for(bool jetstream, Storage storage) {
  return {jetstream, storage != Storage::standard, storage == Storage::synced};
}

}  // namespace

NatsPeerServer::NatsPeerServer(const std::string& program, bool jetstream, Storage storage)
    : OneProcessServer(nats_command(program, settings_for(jetstream, storage))) {
  for (const char letter : nats_configuration(settings_for(jetstream, storage), "DIR"))
    settings_ += letter == '\n' ? ' ' : letter;
  if (!settings_.empty()) settings_ = " with " + settings_.substr(0, settings_.size() - 1);
}

}  // namespace lightq::bench
