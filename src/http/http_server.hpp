/// The HTTP listener and its thread. Layer: http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "http/http_loop.hpp"
#include "http/http_settings.hpp"
#include "http/router.hpp"

namespace lightq::broker {

/// Serves HTTP/1.1 on a thread of its own, by Boost.Asio and Beast. With TLS every connection is encrypted. A
/// connection has one request under way at a time; further requests wait in its socket. All bounds are in
/// limits.hpp: when there are too many connections, the one of the source with most that is idle longest is
/// closed. Thread: created, started, stopped and destroyed on one thread. Idle, it never wakes up.
class HttpServer final : public HttpLoop {
 public:
  /// Binds `tcp://HOST:PORT`; port 0: any free one. May wait for a name server. Errors: address_in_use,
  /// invalid_argument (no such address), io_error.
  static Result<std::unique_ptr<HttpServer>> open(const std::string& uri, HttpSettings settings,
                                                  LogSink& sink);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() override;

  /// Returns the bound address with its port, beginning with `http://` or `https://`.
  [[nodiscard]] const std::string& uri() const;
  /// Returns the routes, to add some. Requires: `start` was not called.
  [[nodiscard]] Router& router();
  /// Begins to accept connections.
  void start();
  /// Closes all connections and ends the thread. Replies that come later are dropped.
  void stop();
  /// Sets the number of requests a second that one source may make. Thread: any.
  void set_requests_per_second(std::size_t requests);
  /// Returns the number of connections. Thread: any.
  [[nodiscard]] std::size_t connections() const;
  /// Returns the number of requests refused because their source asked too much. Thread: any.
  [[nodiscard]] std::uint64_t throttled() const;

  // Implements HttpLoop.
  void post(Task task) override;
  void after(std::chrono::milliseconds delay, Task task) override;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

/// Returns the numeric address and the port of `tcp://HOST:PORT`. Errors: invalid_argument.
Result<std::pair<std::string, std::uint16_t>> http_address_of(const std::string& uri);

}  // namespace lightq::broker
