/// Writes the configuration of nats-server. Layer: bench support.
#include "support/servers/nats_server.hpp"

#include <fstream>

namespace lightq::bench {

std::string nats_configuration(const NatsSettings& settings, const std::string& directory) {
  std::string text = settings.may_lag ? "max_pending: 1GB\nwrite_deadline: \"60s\"\n" : "";
  if (!settings.jetstream) return text;
  text += "jetstream {\n  store_dir: \"" + directory + "\"\n";
  if (settings.always_sync) text += "  sync_interval: always\n";
  return text + "}\n";
}

ServerProcess::MakeCommand nats_command(std::string program, NatsSettings settings) {
  return [program = std::move(program), settings](std::uint16_t port, const std::string& directory) {
    const std::string path = directory + "/nats.conf";
    std::ofstream(path) << nats_configuration(settings, directory);
    return std::vector<std::string>{program,    "--addr", "127.0.0.1", "--port", std::to_string(port),
                                    "--config", path};
  };
}

}  // namespace lightq::bench
