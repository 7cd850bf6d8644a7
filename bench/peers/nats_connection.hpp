/// nats-server, and connections to it with nats.c. Layer: bench peers.
#pragma once

#include <nats/nats.h>

#include <memory>
#include <optional>
#include <string>

#include "peers/peer.hpp"
#include "peers/server_process.hpp"

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

/// Runs nats-server with a configuration file. `jetstream`: with JetStream, which stores in its directory.
class NatsPeerServer : public OneProcessServer {
 public:
  NatsPeerServer(const std::string& program, bool jetstream, Storage storage);
  [[nodiscard]] std::string command() const override { return OneProcessServer::command() + settings_; }

 private:
  std::string settings_;
};

/// The common part of both peers. `directory`: where scripts/bench puts servers.
class NatsPeer : public Peer {
 public:
  explicit NatsPeer(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::optional<std::string> version() const override;
  [[nodiscard]] std::string needs() const override {
    return "nats-server, which is built with Go, and Debian's package libnats-dev";
  }

 protected:
  [[nodiscard]] std::optional<std::string> program() const { return find_program("nats-server", directory_); }

 private:
  std::string directory_;
};

}  // namespace lightq::bench
