/// The broker's HTTP: the listener and its resources. Layer: http.
#include "http/service/http_service.hpp"

#include <utility>

#include "http/resources/page_resource.hpp"

namespace lightq::broker {

namespace {
LatencyCounts latencies_of(const std::vector<ReactorContext*>& reactors) {
  LatencyCounts counts;
  for (const ReactorContext* const reactor : reactors) counts += reactor->latencies.counts();
  return counts;
}
}  // namespace

Result<std::unique_ptr<HttpService>> HttpService::open(const std::string& uri, HttpSettings settings,
                                                       const Parts& parts) {
  LimitCounts* const limits_reached = settings.limits_reached;
  auto server = HttpServer::open(uri, std::move(settings), parts.sink);
  if (!server) return server.error();
  return std::unique_ptr<HttpService>(new HttpService(std::move(*server), limits_reached, parts));
}

HttpService::HttpService(std::unique_ptr<HttpServer> server, LimitCounts* limits_reached, const Parts& parts)
    : server_(std::move(server)),
      gate_({parts.control, parts.permissions, parts.operations, parts.execute}),
      probe_(parts.reactors, parts.directory),
      health_({.loop = *server_,
               .gate = gate_,
               .probe = [this](const ProgressProbe::Done& done) { probe_.run(done); },
               .free_bytes_min = parts.free_bytes_min,
               .flushes = parts.flushes}),
      metrics_({.loop = *server_,
                .gate = gate_,
                .topics_max = parts.metrics_topics_max,
                .latencies = [reactors = parts.reactors] { return latencies_of(reactors); },
                .control_connections = parts.control_connections,
                .http_connections = [this] { return server_->connections(); },
                .limits_reached = limits_reached}),
      events_({.loop = *server_,
               .gate = gate_,
               .control_connections = parts.control_connections,
               .http_connections = [this] { return server_->connections(); },
               .disk = [directory = parts.directory,
                        least = parts.free_bytes_min] { return disk_use(directory, least); },
               .limits_reached = limits_reached}),
      commands_({.loop = *server_, .gate = gate_, .request_bytes_max = parts.request_bytes_max}),
      desks_({.gate = gate_, .on_topic = parts.on_topic, .reactors = parts.reactors.size()}),
      messages_({.loop = *server_, .desks = desks_}),
      streams_({.loop = *server_, .desks = desks_, .limits_reached = limits_reached}),
      browse_({.loop = *server_, .desks = desks_}),
      history_({.loop = *server_, .gate = gate_, .on_topic = parts.on_topic}) {
  health_.add_to(server_->router());
  metrics_.add_to(server_->router());
  events_.add_to(server_->router());
  PageResource::add_to(server_->router());
  commands_.add_to(server_->router());
  messages_.add_to(server_->router());
  streams_.add_to(server_->router());
  browse_.add_to(server_->router());
  history_.add_to(server_->router());
}

}  // namespace lightq::broker
