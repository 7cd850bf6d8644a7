/// The common part of both peers of NATS. Layer: bench peers.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "peers/needs.hpp"
#include "peers/peer.hpp"
#include "support/servers/server_process.hpp"

namespace lightq::bench {

/// NATS, with or without JetStream.
class NatsPeer : public Peer {
 public:
  /// `directory`: where scripts/bench puts servers.
  explicit NatsPeer(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::optional<std::string> version() const override;
  [[nodiscard]] std::string needs() const override { return nats_needs; }

 protected:
  [[nodiscard]] std::optional<std::string> program() const { return find_program("nats-server", directory_); }

 private:
  std::string directory_;
};

}  // namespace lightq::bench
