/// The command that starts nats-server. Layer: bench support.
#pragma once

#include <string>

#include "support/servers/server_process.hpp"

namespace lightq::bench {

/// The settings of a nats-server besides its port.
struct NatsSettings {
  bool jetstream = false;    ///< with JetStream, which stores in the server's directory
  bool may_lag = true;       ///< keeps messages for a slow consumer, instead of closing its connection
  bool always_sync = false;  ///< confirms after fsync; needs nats-server 2.10
};

/// Returns the text of the configuration file.
std::string nats_configuration(const NatsSettings& settings, const std::string& directory);

/// Returns a function that writes the configuration file and returns the command. `program`: its path.
ServerProcess::MakeCommand nats_command(std::string program, NatsSettings settings);

}  // namespace lightq::bench
