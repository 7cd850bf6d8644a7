/// The process of a nats-server. Layer: bench peers.
#pragma once

#include <string>

#include "peers/one_process_server.hpp"

namespace lightq::bench {

/// nats-server with the settings for `storage`. `jetstream`: with JetStream.
class NatsPeerServer : public OneProcessServer {
 public:
  NatsPeerServer(const std::string& program, bool jetstream, Storage storage);
  [[nodiscard]] std::string command() const override { return OneProcessServer::command() + settings_; }

 private:
  std::string settings_;
};

}  // namespace lightq::bench
