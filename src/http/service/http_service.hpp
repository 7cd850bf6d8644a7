/// The broker's HTTP: the listener and its resources. Layer: http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "control/commands/operations.hpp"
#include "control/rights/permissions.hpp"
#include "http/control_gate.hpp"
#include "http/http_server.hpp"
#include "http/http_settings.hpp"
#include "http/messages/message_desks.hpp"
#include "http/resources/browse_resource.hpp"
#include "http/resources/control_resource.hpp"
#include "http/resources/events_resource.hpp"
#include "http/resources/health_resource.hpp"
#include "http/resources/history_resource.hpp"
#include "http/resources/messages_resource.hpp"
#include "http/resources/metrics_resource.hpp"
#include "http/resources/stream_resource.hpp"
#include "topic/reactor/progress_probe.hpp"
#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// Owns the HTTP server and its resources. Thread: the composition root's. Lifetime: the parts outlive it,
/// and it outlives the control thread, which may still reply.
class HttpService {
 public:
  struct Parts {
    LogSink& sink;
    EventLoop& control;
    Permissions& permissions;
    Operations& operations;
    std::vector<ReactorContext*> reactors;
    std::filesystem::path directory;                   ///< on the disk that a check of progress probes
    std::uint64_t free_bytes_min = 0;                  ///< appends wait with less
    bool flushes = true;                               ///< see ProgressWatch
    std::size_t metrics_topics_max = 0;                ///< topics with series of their own
    std::function<std::size_t()> control_connections;  ///< called on the control thread
    /// Executes a command; called on the control thread.
    std::function<void(protocol::Request request, const Answer& answer)> execute;
    std::size_t request_bytes_max = limits::request_bytes_max;  ///< of a command
    MessageDesks::OnTopic on_topic;                             ///< any thread
  };

  /// Binds `uri`: see HttpServer::open.
  static Result<std::unique_ptr<HttpService>> open(const std::string& uri, HttpSettings settings,
                                                   const Parts& parts);
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  [[nodiscard]] const std::string& uri() const { return server_->uri(); }
  /// Returns the number of requests refused because their source asked too much. Thread: any.
  [[nodiscard]] std::uint64_t throttled() const { return server_->throttled(); }
  /// Sets the number of requests a second that one source may make. Thread: any.
  void set_requests_per_second(std::size_t requests) { server_->set_requests_per_second(requests); }
  void start() { server_->start(); }
  void stop() { server_->stop(); }

 private:
  HttpService(std::unique_ptr<HttpServer> server, LimitCounts* limits_reached, const Parts& parts);

  const std::unique_ptr<HttpServer> server_;
  const ControlGate gate_;
  ProgressProbe probe_;
  HealthResource health_;
  MetricsResource metrics_;
  EventsResource events_;
  ControlResource commands_;
  MessageDesks desks_;
  MessagesResource messages_;
  StreamResource streams_;
  BrowseResource browse_;
  HistoryResource history_;
};

}  // namespace lightq::broker
