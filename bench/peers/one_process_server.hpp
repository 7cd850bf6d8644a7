/// A peer's server that is one process. Layer: bench peers.
#pragma once

#include <csignal>
#include <utility>

#include "peers/peer.hpp"
#include "support/servers/server_process.hpp"

namespace lightq::bench {

/// The part of a peer's server that concerns its process.
class OneProcessServer : public PeerServer {
 public:
  explicit OneProcessServer(const ServerProcess::MakeCommand& make_command,
                            ServerProcess::Environment environment = {},
                            std::chrono::seconds start_time_max = std::chrono::seconds(20))
      : server_(make_command, std::move(environment), start_time_max) {}
  [[nodiscard]] pid_t process() const override { return server_.id(); }
  [[nodiscard]] std::string command() const override { return server_.command_text(); }
  void pause() override { server_.signal(SIGSTOP); }
  void resume() override { server_.signal(SIGCONT); }
  void kill() override { server_.kill(); }
  void restart() override { server_.restart(); }

 protected:
  [[nodiscard]] const ServerProcess& server() const { return server_; }

 private:
  ServerProcess server_;
};

}  // namespace lightq::bench
