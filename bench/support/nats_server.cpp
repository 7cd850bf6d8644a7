/// Starts a nats-server and finds its port. Layer: bench support.
#include "support/nats_server.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds start_time_max{20};
constexpr std::chrono::milliseconds look_interval{5};

/// Returns the content of the file NAME_PID.ports, with which the server names its addresses.
nlohmann::json ports_in(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".ports") continue;
    std::ifstream file(entry.path());
    return nlohmann::json::parse(file, nullptr, false);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<NatsServer>> NatsServer::start(const std::string& binary) {
  std::unique_ptr<NatsServer> server(new NatsServer());
  const std::string directory = server->directory_.path().string();
  std::ofstream(directory + "/nats.conf")
      << "host: 127.0.0.1\nport: -1\nmax_pending: 2000000000\nwrite_deadline: \"60s\"\n"
      << "ports_file_dir: \"" << directory << "\"\n"
      << "jetstream { store_dir: \"" << directory << "/store\", max_mem: 4GB, max_file: 1GB }\n";
  auto process = ChildProcess::execute({binary, "-c", directory + "/nats.conf"}, {}, directory + "/nats.log");
  if (!process) return process.error();
  server->process_ = std::move(process).value();
  if (const auto ready = server->wait_until_ready(); !ready) return ready.error();
  return server;
}

Result<void> NatsServer::wait_until_ready() {
  const Clock::time_point give_up = Clock::now() + start_time_max;
  while (Clock::now() < give_up && !stop_requested()) {
    const nlohmann::json ports = ports_in(directory_.path());
    if (ports.is_object() && ports.contains("nats") && !ports["nats"].empty()) {
      uri_ = ports["nats"][0].get<std::string>();
      return {};
    }
    if (const auto end = process_->wait_until(Clock::now() + look_interval))
      return failure("nats-server did not start: " + end->text());
  }
  return failure("nats-server did not start in time");
}

}  // namespace lightq::bench
