/// The broker's HTTP: the listener, and what it serves. Layer: broker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>

#include "broker/config.hpp"
#include "broker/data_directory.hpp"
#include "broker/progress_probe.hpp"
#include "broker/reactor_pool.hpp"
#include "control/commands/operations.hpp"
#include "control/commands/permissions.hpp"
#include "http/control_gate.hpp"
#include "http/http_server.hpp"
#include "http/resources/health_resource.hpp"
#include "http/resources/metrics_resource.hpp"

namespace lightq::broker {

/// Owns the HTTP server and its resources. Thread: the composition root's. Lifetime: the parts outlive it,
/// and it outlives the control thread, which may still reply.
class BrokerHttp {
 public:
  struct Parts {
    const Config& config;
    LogSink& sink;
    const DataDirectory& directory;
    EventLoop& control;
    Permissions& permissions;
    Operations& operations;
    ReactorPool& reactors;
    LimitCounts& limits_reached;
    const TlsContext* tls;                             ///< null: nothing is encrypted
    std::uint64_t free_bytes_min;                      ///< appends wait with less
    std::function<std::size_t()> control_connections;  ///< called on the control thread
  };

  /// Binds the address of the setting `http`. Returns null if it is off, and also, with a warning, if another
  /// process has the address and nobody has asked for it. Errors: those of HttpServer::open.
  static Result<std::unique_ptr<BrokerHttp>> open(const Parts& parts);
  BrokerHttp(const BrokerHttp&) = delete;
  BrokerHttp& operator=(const BrokerHttp&) = delete;

  [[nodiscard]] const std::string& uri() const { return server_->uri(); }
  /// Thread: any.
  [[nodiscard]] std::uint64_t throttled() const { return server_->throttled(); }
  void start() { server_->start(); }
  void stop() { server_->stop(); }

 private:
  BrokerHttp(const Parts& parts, std::unique_ptr<HttpServer> server);

  const std::unique_ptr<HttpServer> server_;
  const ControlGate gate_;
  ProgressProbe probe_;
  HealthResource health_;
  MetricsResource metrics_;
};

}  // namespace lightq::broker
