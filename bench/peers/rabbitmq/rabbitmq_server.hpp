/// The process of a RabbitMQ server. Layer: bench peers.
#pragma once

#include "peers/one_process_server.hpp"

namespace lightq::bench {

/// Ends epmd, which a node starts as a daemon, when the node has ended or could not start.
class NameServer {
 public:
  NameServer() : port_(free_port()) {}
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer();

 protected:
  [[nodiscard]] std::uint16_t name_server_port() const { return port_; }

 private:
  std::uint16_t port_;
};

/// A node with its own directories, its own name server, and no plugins.
class RabbitNode : private NameServer, public OneProcessServer {
 public:
  RabbitNode();

  /// Returns the path of the script that starts the node; nothing: it is not installed.
  static std::optional<std::string> program();
  /// Returns the version of the installed package.
  static std::string version();
};

}  // namespace lightq::bench
