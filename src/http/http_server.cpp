/// The HTTP listener and its thread. Layer: http.
#include "http/http_server.hpp"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "admission/eviction_queue.hpp"
#include "admission/quota.hpp"
#include "admission/token_bucket.hpp"
#include "control/client_bounds.hpp"
#include "http/host_names.hpp"
#include "http/http_connection.hpp"
#include "http/problem.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::string_view tcp_scheme = "tcp://";
constexpr std::size_t scratch_bytes = 16 * limits::KiB;
constexpr int accepts_per_call = 64;
constexpr std::chrono::milliseconds pause_without_descriptors{100};

Error no_address(const std::string& why) {
  return {ErrorCode::invalid_argument, "http: " + why};
}

}  // namespace

Result<std::pair<std::string, std::uint16_t>> http_address_of(const std::string& uri) {
  const std::string_view text = uri;
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(tcp_scheme) || colon == std::string_view::npos || colon <= tcp_scheme.size())
    return no_address("it must be tcp://HOST:PORT, or off");
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return no_address("the port must be a number from 0 to 65535");
  std::string host(text.substr(tcp_scheme.size(), colon - tcp_scheme.size()));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  auto address = resolve_host(host == "*" ? "0.0.0.0" : host);
  if (!address) return no_address(address.error().text());
  return std::pair(std::move(*address), port);
}

/// Owns the connections. Thread: the HTTP thread, except `post` and `count`.
class HttpServer::Impl final : public HttpConnection::Owner {
 public:
  Impl(ListeningSocket listener, const std::string& address, HttpSettings settings, LogSink& sink)
      : settings_(std::move(settings)),
        sink_(sink),
        names_(settings_.names),
        rates_(Rate(settings_.requests_per_second), limits::login_sources_max),
        listener_(std::move(listener)),
        protocol_(address.find(':') == std::string::npos ? tcp::v4() : tcp::v6()),
        uri_(std::string(settings_.tls != nullptr ? "https://" : "http://") + uri_host(address) + ":" +
             std::to_string(listener_.port)),
        watch_(io_, listener_.descriptor.get()),
        pause_(io_),
        scratch_(scratch_bytes) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() override {
    stop();
    watch_.release();  // listener_ closes it
  }

  [[nodiscard]] const std::string& uri() const { return uri_; }
  [[nodiscard]] Router& router() { return router_; }
  [[nodiscard]] std::size_t count() const { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t throttled() const { return throttled_.load(std::memory_order_relaxed); }

  void start() {
    accept_more();
    thread_ = std::jthread([this] { run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      pause_.cancel();
      watch_.cancel();
      is_stopping_ = true;
      const auto ending = connections_;
      for (const auto& [id, connection] : ending) connection->close();
      io_.stop();
    });
    thread_.join();
  }
  void post(Task task) { asio::post(io_, std::move(task)); }
  void set_requests_per_second(std::size_t requests) {
    asio::post(io_, [this, requests] { rates_.set_rate(Rate(requests)); });
  }
  void after(std::chrono::milliseconds delay, Task task) {
    const auto timer = std::make_shared<asio::steady_timer>(io_, delay);
    timer->async_wait([timer, task = std::move(task)](const boost::system::error_code& error) {
      if (!error) task();
    });
  }

  // Implements HttpConnection::Owner.

  void requested(HttpConnection& connection, HttpRequest request) override {
    const std::string& source = connection.source().key;
    const auto taken = rates_.take_estimate(source, HttpLoop::Clock::now());
    const HttpReply reply = [this, id = connection.id(), number = connection.request_number(), source,
                             taken = taken.value_or(0)](HttpResponse response) {
      asio::post(io_, [this, id, number, source, taken, response = std::move(response)]() mutable {
        rates_.settle(source, taken, taken == 0 ? 0 : ClientBounds::cost_of(response.body.size()));
        if (const auto found = connections_.find(id); found != connections_.end())
          return found->second->respond(number, std::move(response));
        if (response.not_sent) response.not_sent();
      });
    };
    const auto watch_end = [this, id = connection.id(), number = connection.request_number()] {
      if (const auto found = connections_.find(id); found != connections_.end())
        found->second->watch_end(number);
    };
    const auto send_more = [this, id = connection.id(), number = connection.request_number()](
                               std::string_view part, bool is_last) {
      if (const auto found = connections_.find(id); found != connections_.end())
        found->second->send_more(number, part, is_last);
    };
    if (!taken) {
      ++throttled_;
      return reply(problem({ErrorCode::busy, "too many requests from this source address; try again"}));
    }
    if (auto refusal = names_.refusal_of(request)) return reply(std::move(*refusal));
    router_.handle({std::move(request), {}, connection.source(), reply, watch_end, send_more});
  }
  void idle_changed(HttpConnection& connection, bool is_idle) override {
    known_.put(connection.id(), connection.source().key, is_idle ? Eviction::first : Eviction::later);
  }
  void refused(const HttpResponse& response) override {
    if (response.status == 413) broker::count(settings_.limits_reached, Limit::http_body_bytes_max);
    if (response.status == 431) broker::count(settings_.limits_reached, Limit::http_head_bytes_max);
    if (response.status == 408) broker::count(settings_.limits_reached, Limit::http_head_ms);
  }
  void closed(HttpConnection& connection) override {
    known_.remove(connection.id());
    connections_.erase(connection.id());
    count_.store(connections_.size(), std::memory_order_relaxed);
  }
  bool keep_content(const std::string& source, std::size_t bytes) override {
    return contents_.take(source, bytes) == Bytes::Verdict::room;
  }
  void release_content(const std::string& source, std::size_t bytes) override {
    contents_.give_back(source, bytes);
  }
  bool keep_response(const std::string& source, std::size_t bytes) override {
    const bool is_alone = responses_.total() == 0;  // then it may be longer than the limit
    if (is_alone) responses_.add(source, bytes);
    const bool has_room = is_alone || responses_.take(source, bytes) == Bytes::Verdict::room;
    if (!has_room) broker::count(settings_.limits_reached, Limit::http_responses_bytes_total);
    return has_room;
  }
  void release_response(const std::string& source, std::size_t bytes) override {
    responses_.give_back(source, bytes);
  }
  void content_refused() override { broker::count(settings_.limits_reached, Limit::http_bodies_bytes_total); }
  std::vector<std::byte>& scratch() override { return scratch_; }

 private:
  /// A handler ends with an exception only if there is no memory. Its connection then ends at its deadline.
  void run() {
    while (true) {
      try {
        io_.run();
        return;
      } catch (const std::exception& error) {
        sink_.error(std::string("http: a request was given up: ") + error.what());
      }
    }
  }

  void accept_more() {
    watch_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [this](const boost::system::error_code& error) {
                        if (!error && !is_stopping_) accept_waiting();
                      });
  }

  void accept_waiting() {
    for (int i = 0; i < accepts_per_call; ++i) {
      Accepted peer = accept_connection(listener_, limits::descriptors_reserved_for_files);
      if (peer.outcome == AcceptOutcome::none) break;
      if (peer.outcome == AcceptOutcome::out_of_descriptors) return pause_accepting();
      add(std::move(peer.descriptor));
    }
    accept_more();
  }

  void pause_accepting() {
    broker::count(settings_.limits_reached, Limit::descriptors_reserved);
    pause_.expires_after(pause_without_descriptors);
    pause_.async_wait([this](const boost::system::error_code& error) {
      if (!error && !is_stopping_) accept_more();
    });
  }

  void add(UniqueFd descriptor) {
    const std::string source = source_of(descriptor.get()).key;
    if (!make_room(source)) return;
    boost::system::error_code failed;
    tcp::socket socket(io_);
    if (socket.assign(protocol_, descriptor.get(), failed); failed) return;
    (void)descriptor.release();  // the socket closes it
    socket.non_blocking(true, failed);
    const std::uint64_t id = next_id_++;
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), *this, settings_, id);
    connections_.emplace(id, connection);
    known_.put(id, source, Eviction::first);
    count_.store(connections_.size(), std::memory_order_relaxed);
    connection->start();
  }

  /// Closes a connection if there are too many. Returns false if none can be closed.
  bool make_room(const std::string& source) {
    if (known_.of(source) >= settings_.connections_per_source_max)
      return evict(known_.oldest_of(source), Limit::http_connections_per_source_max);
    if (known_.size() < settings_.connections_max) return true;
    return evict(known_.oldest_of_most(), Limit::http_connections_max);
  }

  bool evict(const std::optional<std::uint64_t>& ended, Limit limit) {
    broker::count(settings_.limits_reached, limit);
    if (!ended) return false;
    const auto found = connections_.find(*ended);
    if (found == connections_.end()) return false;
    const auto connection = found->second;  // outlives its removal
    connection->close();
    return true;
  }

  using Bytes = Quota<std::string>;

  const HttpSettings settings_;
  LogSink& sink_;
  const HostNames names_;
  Router router_;
  TokenBucket<std::string> rates_;
  ListeningSocket listener_;
  const tcp protocol_;
  const std::string uri_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::posix::stream_descriptor watch_;
  asio::steady_timer pause_;
  std::vector<std::byte> scratch_;
  EvictionQueue<std::string> known_;
  std::unordered_map<std::uint64_t, std::shared_ptr<HttpConnection>> connections_;
  std::uint64_t next_id_ = 1;
  Bytes contents_{{.total = settings_.bodies_bytes_total}};      // of requests, by source
  Bytes responses_{{.total = settings_.responses_bytes_total}};  // long ones, by source
  bool is_stopping_ = false;
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::uint64_t> throttled_ = 0;
  std::jthread thread_;  // last: ends before the other members are destroyed
};

Result<std::unique_ptr<HttpServer>> HttpServer::open(const std::string& uri, HttpSettings settings,
                                                     LogSink& sink) {
  const auto address = http_address_of(uri);
  if (!address) return address.error();
  auto listener = listen_tcp(address->first, address->second);
  if (!listener) {
    Error error = listener.error();
    error.message = "http: cannot listen on " + uri + ": " + error.message;
    return error;
  }
  return std::unique_ptr<HttpServer>(new HttpServer(
      std::make_unique<Impl>(std::move(*listener), address->first, std::move(settings), sink)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

const std::string& HttpServer::uri() const {
  return impl_->uri();
}

Router& HttpServer::router() {
  return impl_->router();
}

void HttpServer::start() {
  impl_->start();
}

void HttpServer::stop() {
  impl_->stop();
}

std::size_t HttpServer::connections() const {
  return impl_->count();
}

std::uint64_t HttpServer::throttled() const {
  return impl_->throttled();
}

void HttpServer::set_requests_per_second(std::size_t requests) {
  impl_->set_requests_per_second(requests);
}

void HttpServer::post(Task task) {
  impl_->post(std::move(task));
}

void HttpServer::after(std::chrono::milliseconds delay, Task task) {
  impl_->after(delay, std::move(task));
}

}  // namespace lightq::broker
