/// Asks the broker's control socket and waits for the answer, within a deadline. Layer: client.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <zmq.hpp>

#include <lightq/data_socket.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json.hpp>

namespace lightq::inline v1 {

/// One REQ socket to a broker. A request that ends without an answer costs the socket, which is replaced:
/// so an answer that comes too late can never be taken for the next one's, and a broker's restart is
/// survived. Any thread; requests of several threads go one after the other.
class ControlConnection {
 public:
  ControlConnection(std::shared_ptr<zmq::context_t> context, std::string uri)
      : context_(std::move(context)), uri_(std::move(uri)) {}

  /// Sends the request and waits for its reply. The timeout includes waiting for other threads' requests.
  /// Errors: the broker's (its `code` and `description`), timeout (whether the broker did what was asked is
  /// unknown then), invalid_argument (the URI is none), limit_reached, io_error, closed.
  Result<protocol::Reply> ask(const protocol::Request& request, Timeout timeout) {
    const auto deadline = deadline_after(timeout);
    const Turn turn(*this, deadline);
    if (!turn.taken) return timeout_error(request, timeout);
    try {
      if (Result<void> ready = prepare(); !ready) return ready.error();
      const std::string text = protocol::to_json(request);
      socket_.send(zmq::const_buffer(text.data(), text.size()), zmq::send_flags::dontwait);
      if (!DataSocket::wait(socket_, ZMQ_POLLIN, deadline)) {
        socket_.close();
        return timeout_error(request, timeout);
      }
      zmq::message_t answer;
      if (!socket_.recv(answer, zmq::recv_flags::dontwait)) {
        socket_.close();
        return timeout_error(request, timeout);
      }
      return read(request, answer);
    } catch (const zmq::error_t& error) {
      socket_.close();
      return zmq_error("cannot ask the broker at " + uri_, error.num());
    }
  }

  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  /// One request's turn on the socket. Not a timed mutex: the thread sanitizer does not know those.
  struct Turn {
    Turn(ControlConnection& connection, std::chrono::steady_clock::time_point deadline) : owner(connection) {
      std::unique_lock lock(owner.mutex_);
      taken = owner.free_.wait_until(lock, deadline, [this] { return !owner.busy_; });
      if (taken) owner.busy_ = true;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (!taken) return;
      const std::scoped_lock lock(owner.mutex_);
      owner.busy_ = false;
      owner.free_.notify_one();
    }
    ControlConnection& owner;
    bool taken = false;
  };

  /// Makes sure that there is a socket to ask on.
  Result<void> prepare() {
    if (socket_.handle() != nullptr) return {};
    socket_ = zmq::socket_t(*context_, zmq::socket_type::req);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::tcp_keepalive, 1);
    socket_.set(zmq::sockopt::ipv6, uri_.find('[') != std::string::npos);
    try {
      socket_.connect(uri_);
    } catch (const zmq::error_t& error) {
      socket_.close();
      return Error{ErrorCode::invalid_argument, "cannot connect to '" + uri_ + "': " + error.what() +
                                                    " (a broker is given as tcp://HOST:PORT or ipc://PATH)"};
    }
    return {};
  }

  Result<protocol::Reply> read(const protocol::Request& request, const zmq::message_t& answer) {
    while (socket_.get(zmq::sockopt::rcvmore)) {  // never from a LightQ broker
      zmq::message_t rest;
      (void)socket_.recv(rest, zmq::recv_flags::dontwait);
    }
    Result<protocol::Reply> reply = protocol::parse_reply(request, answer.to_string_view());
    if (!reply) return reply;
    if (const auto* error = std::get_if<protocol::ErrorReply>(&*reply)) {
      return Error{error->code, error->description};
    }
    return reply;
  }

  [[nodiscard]] Error timeout_error(const protocol::Request& request, Timeout timeout) const {
    return {ErrorCode::timeout, "no answer to " + std::string(protocol::command_of(request)) +
                                    " from a broker at " + uri_ + " within " +
                                    std::to_string(timeout.count()) + " ms"};
  }

  std::shared_ptr<zmq::context_t> context_;
  std::string uri_;
  std::mutex mutex_;
  std::condition_variable free_;
  bool busy_ = false;     // guarded by mutex_
  zmq::socket_t socket_;  // belongs to whose turn it is; null until the first request and after a failed one
};

}  // namespace lightq::inline v1
