/// The broker's HTTP: the listener, and what it serves. Layer: broker.
#include "broker/broker_http.hpp"

#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

namespace lightq::broker {

namespace {

/// Returns the names under which clients may address the listener.
std::vector<std::string> names_of(const Config& config, const std::string& uri) {
  std::vector<std::string> names = config.http_hosts;
  for (const std::string& host : {config.advertise_host, config.bind_host}) {
    if (!host.empty()) names.push_back(host);
  }
  constexpr std::size_t scheme_length = 6;  // tcp://
  names.push_back(uri.substr(scheme_length, uri.rfind(':') - scheme_length));
  std::array<char, 256> own{};
  if (gethostname(own.data(), own.size() - 1) == 0) names.emplace_back(own.data());
  return names;
}

HttpSettings settings_of(const BrokerHttp::Parts& parts, const std::string& uri) {
  return {.tls = parts.tls,
          .names = names_of(parts.config, uri),
          .connections_max = parts.config.http_connections_max,
          .requests_per_second = parts.config.requests_per_second,
          .limits_reached = &parts.limits_reached};
}

}  // namespace

Result<std::unique_ptr<BrokerHttp>> BrokerHttp::open(const Parts& parts) {
  const auto uri = http_uri_of(parts.config);
  if (!uri) return std::unique_ptr<BrokerHttp>();
  auto server = HttpServer::open(*uri, settings_of(parts, *uri), parts.sink);
  if (server) return std::unique_ptr<BrokerHttp>(new BrokerHttp(parts, std::move(*server)));
  if (server.error().code != ErrorCode::address_in_use || parts.config.http_uri) return server.error();
  parts.sink.warn(server.error().text() +
                  "; the broker runs without HTTP: choose another port with --http tcp://127.0.0.1:PORT, or "
                  "none with --http off");
  return std::unique_ptr<BrokerHttp>();
}

BrokerHttp::BrokerHttp(const Parts& parts, std::unique_ptr<HttpServer> server)
    : server_(std::move(server)),
      gate_({parts.control, parts.permissions, parts.operations}),
      probe_(parts.reactors, parts.directory.path()),
      health_({.loop = *server_,
               .gate = gate_,
               .probe = [this](const HealthResource::ProbeDone& done) { probe_.run(done); },
               .free_bytes_min = parts.free_bytes_min,
               .flushes = parts.config.flush_interval.count() > 0}),
      metrics_({.loop = *server_,
                .gate = gate_,
                .topics_max = parts.config.metrics_topics_max,
                .latencies = [&reactors = parts.reactors] { return reactors.latencies(); },
                .control_connections = parts.control_connections,
                .http_connections = [this] { return server_->connections(); },
                .limits_reached = &parts.limits_reached}) {
  health_.add_to(server_->router());
  metrics_.add_to(server_->router());
}

}  // namespace lightq::broker
