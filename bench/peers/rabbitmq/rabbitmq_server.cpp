/// Starts RabbitMQ from Debian's package, apart from the one that the package itself starts. Layer: bench
/// peers.
#include "peers/rabbitmq/rabbitmq_server.hpp"

#include <fstream>
#include <stdexcept>

namespace lightq::bench {
namespace {

constexpr const char* script_directory = "/usr/lib/rabbitmq/bin";
constexpr std::chrono::seconds start_time_max{90};

}  // namespace

std::optional<std::string> RabbitNode::program() {
  return find_program("rabbitmq-server", script_directory);
}

std::string RabbitNode::version() {
  const std::string text = output_of({"/usr/bin/dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"});
  return text.substr(0, text.find('-'));
}

NameServer::~NameServer() {
  try {
    output_of({"/usr/bin/epmd", "-port", std::to_string(port_), "-kill"});
  } catch (const std::exception&) {
    // It has ended by itself, or the node did not start it.
  }
}

RabbitNode::RabbitNode()
    : OneProcessServer(
          [&](std::uint16_t port, const std::string& directory) {
            std::ofstream(directory + "/enabled_plugins") << "[].\n";
            std::ofstream(directory + "/rabbitmq.conf")
                << "listeners.tcp.default = 127.0.0.1:" << port << "\n";
            const auto set = [](const std::string& name, const std::string& value) {
              return name + "=" + value;
            };
            return std::vector<std::string>{
                "/usr/bin/env",
                set("HOME", directory),
                set("ERL_EPMD_ADDRESS", "127.0.0.1"),
                set("ERL_EPMD_PORT", std::to_string(name_server_port())),
                set("ERL_EPMD_RELAXED_COMMAND_CHECK", "true"),  // permits to end it
                set("RABBITMQ_NODENAME", "bench" + std::to_string(port) + "@localhost"),
                set("RABBITMQ_DIST_PORT", std::to_string(free_port())),
                set("RABBITMQ_MNESIA_BASE", directory + "/data"),
                set("RABBITMQ_LOG_BASE", directory + "/log"),
                set("RABBITMQ_ENABLED_PLUGINS_FILE", directory + "/enabled_plugins"),
                set("RABBITMQ_CONFIG_FILE", directory + "/rabbitmq"),
                set("RABBITMQ_CONF_ENV_FILE", "/dev/null"),
                set("RUNNING_UNDER_SYSTEMD",
                    "true"),  // the script then becomes the node, without a shell above it
                program().value()};
          },
          {}, start_time_max) {}

}  // namespace lightq::bench
