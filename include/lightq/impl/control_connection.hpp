/// Sends requests to the broker's control socket and waits for the replies, within a deadline. Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <zmq.hpp>

#include <lightq/base/home_process.hpp>
#include <lightq/base/random.hpp>
#include <lightq/base/result.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/detail/data_socket.hpp>
#include <lightq/detail/deadline.hpp>
#include <lightq/detail/reachability.hpp>
#include <lightq/detail/running_broker.hpp>
#include <lightq/detail/session_backoff.hpp>
#include <lightq/detail/socket_monitor.hpp>
#include <lightq/detail/tcp_uri.hpp>
#include <lightq/detail/zmq_socket.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/zmq_error.hpp>

namespace lightq::inline v1 {

/// Returns the error for a request to which no broker has replied within `timeout`.
inline Error no_answer_error(const protocol::Request& request, const std::string& uri, Timeout timeout) {
  return {ErrorCode::timeout, "no answer to " + std::string(protocol::command_of(request)) +
                                  " from a broker at " + uri + " within " + std::to_string(timeout.count()) +
                                  " ms"};
}

/// One REQ socket to a broker. Replaces the socket after a request without a reply. So a late reply is never
/// taken for the next request's, and the connection survives a restart of the broker. Thread: any; requests
/// of several threads go one after the other.
class ControlConnection {
 public:
  /// `identity`: the keys of an encrypted connection. Null: not encrypted.
  ControlConnection(std::shared_ptr<zmq::context_t> context, std::string uri,
                    std::shared_ptr<const CurveIdentity> identity = nullptr)
      : context_(std::move(context)), uri_(std::move(uri)), identity_(std::move(identity)) {}
  ~ControlConnection() { close(); }
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  /// The behaviour of `ask` if nothing listens at the address: wait, because a broker may be starting, or
  /// fail.
  enum class Absence { waits, fails };
  /// Sends the request and waits for its reply. `timeout` includes the time that other threads' requests
  /// take. After a reply `busy`, with which the broker has done nothing, sends the request again, until the
  /// timeout.
  ///
  /// Errors:
  /// - The broker's, with its `code` and `description`.
  /// - timeout: the broker may have carried the request out.
  /// - Those of why_unreachable.
  /// - unauthorized_access: the broker encrypts and this client does not, or has the wrong key, or is not on
  ///   the broker's list of keys.
  /// - invalid_argument: not a URI.
  /// - limit_reached, io_error, closed.
  Result<protocol::Reply> ask(const protocol::Request& request, Timeout timeout,
                              Absence absence = Absence::waits) {
    constexpr Timeout shortest{20};
    constexpr Timeout longest{100};
    const auto deadline = deadline_after(timeout);
    SessionBackoff backoff(shortest, longest, random_number<std::uint64_t>());
    while (true) {
      Result<protocol::Reply> reply = ask_once(request, timeout, deadline, absence);
      const auto wait = backoff.next();
      const bool passes = !reply && reply.error().code == ErrorCode::busy;
      if (!passes || wait >= time_left(deadline)) return reply;
      std::this_thread::sleep_for(wait);
    }
  }

  /// Returns the broker's control URI, as given.
  [[nodiscard]] const std::string& uri() const { return uri_; }
  /// Sends all later requests through the broker's socket in its data directory. Requires: no other thread
  /// uses this object yet.
  void go_through(detail::OwnerSocket socket) {
    close();
    own_socket_ = std::move(socket);
  }

 private:
  // No reply of a broker is longer. libzmq closes the connection if a longer message arrives, so the memory
  // for a reply is bounded.
  static constexpr std::int64_t answer_bytes_max = 65 * std::int64_t{limits::MiB};

  /// One request's turn on the socket. Not a timed mutex, because the thread sanitizer does not know those.
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

  /// Makes one attempt of `ask`. `timeout`: only for the error's text.
  Result<protocol::Reply> ask_once(const protocol::Request& request, Timeout timeout,
                                   std::chrono::steady_clock::time_point deadline, Absence absence) {
    // Another thread may have had the lock when the process was forked.
    if (!home_.is_here()) return opened_before_fork("the client");
    const Turn turn(*this, deadline);
    if (!turn.taken) return timeout_error(request, timeout);
    try {
      if (Result<void> ready = prepare(); !ready) return ready.error();
      zmq::message_t message(protocol::to_json(request));
      (void)socket_.send(message, zmq::send_flags::dontwait);
      Result<bool> answered = absence == Absence::fails ? look(deadline) : wait(deadline);
      if (answered && !*answered && absence == Absence::fails) answered = wait(deadline);
      if (!answered || !*answered) {
        close();
        return answered ? timeout_error(request, timeout) : answered.error();
      }
      zmq::message_t answer;
      if (!socket_.recv(answer, zmq::recv_flags::dontwait)) {
        close();
        return timeout_error(request, timeout);
      }
      return read(request, answer);
    } catch (const zmq::error_t& error) {
      close();
      return zmq_error("cannot send a request to the broker at " + uri_, error.num());
    }
  }

  /// Opens and connects the socket if there is none. Errors: invalid_argument.
  Result<void> prepare() {
    if (socket_.handle() != nullptr) return {};
    if (Result<void> valid = detail::check_port(uri_); !valid) return valid;
    socket_ = ZmqSocket(*context_, zmq::socket_type::req);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::tcp_keepalive, 1);
    socket_.set(zmq::sockopt::ipv6, detail::is_ipv6(uri_));
    socket_.set(zmq::sockopt::maxmsgsize, answer_bytes_max);
    monitor_.open(*context_, socket_, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (identity_ != nullptr) identity_->show(socket_);
    try {
      socket_.connect(address());
    } catch (const zmq::error_t& error) {
      close();
      return Error{ErrorCode::invalid_argument,
                   "cannot connect to '" + uri_ + "': " + error.what() +
                       " (the address of a broker is tcp://HOST:PORT or ipc://PATH)"};
    }
    return {};
  }

  /// Returns the address to which requests go.
  [[nodiscard]] std::string address() const { return own_socket_ ? own_socket_->uri() : uri_; }

  void close() noexcept {
    if (!home_.is_here()) return;
    SocketMonitor::stop(socket_);
    socket_.close();
    monitor_.close();
  }

  /// Waits as `wait` does, but up to 50 ms. If no reply arrives, checks whether anything listens at the
  /// address. Errors: those of `wait` and of why_unreachable.
  Result<bool> look(std::chrono::steady_clock::time_point deadline) {
    constexpr Timeout moment{50};
    constexpr Timeout patience{1000};
    Result<bool> answered = wait(std::min(deadline, deadline_after(moment)));
    if (!answered || *answered) return answered;
    const Timeout left = time_left(deadline);
    if (left.count() == 0) return false;
    if (auto why = detail::why_unreachable(address(), std::min(left, patience))) return *std::move(why);
    return false;
  }

  /// Waits for a reply. Returns false if none arrived in time. Error: the broker refused the connection, so
  /// no reply can arrive.
  Result<bool> wait(std::chrono::steady_clock::time_point deadline) {
    while (true) {
      zmq_pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                {monitor_.socket().handle(), 0, ZMQ_POLLIN, 0}};
      const Timeout left = time_left(deadline);
      const int ready = zmq_poll(items, 2, static_cast<long>(left.count()));
      if (ready < 0 && zmq_errno() != EINTR) return true;  // the receive returns the error
      if (ready > 0 && items[0].revents != 0) return true;
      if (ready > 0 && monitor_.next() != 0) return refusal();
      if (left.count() == 0) return false;
    }
  }

  /// Returns the error for a handshake that the broker or libzmq has ended. libzmq does not try to connect
  /// again.
  [[nodiscard]] Error refusal() const {
    const bool other_mechanism = monitor_.value() == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH;
    const std::string broker = "the broker at " + uri_;
    if (identity_ == nullptr)
      return {ErrorCode::unauthorized_access,
              broker +
                  " requires encryption: give its public key, which  lightq broker key  prints there "
                  "(--server-key, LIGHTQ_SERVER_KEY)"};
    if (other_mechanism)
      return {ErrorCode::unauthorized_access,
              broker +
                  " does not encrypt, but a server key was given, or an encrypting broker has left one in "
                  "server_key.json of this machine's data directory (if the broker is right, remove that "
                  "file or give another --data-dir): nothing was sent to it"};
    return {
        ErrorCode::unauthorized_access,
        broker +
            " refuses the connection. Its key may differ from the given one, or from that in broker.json or "
            "server_key.json of this machine's data directory (--server-key gives the right one, --data-dir "
            "another directory). Or it accepts only listed keys of clients (allowed_client_keys): " +
            (identity_->file().empty()
                 ? "--client-key-file (LIGHTQ_CLIENT_KEY_FILE) gives a listed one"
                 : "the key of " + identity_->file() + " is " + identity_->public_key())};
  }

  Result<protocol::Reply> read(const protocol::Request& request, zmq::message_t& answer) {
    while (socket_.get(zmq::sockopt::rcvmore)) {  // a LightQ broker never sends more than one frame
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
    Error error = no_answer_error(request, uri_, timeout);
    if (const auto why = detail::why_unreachable(address(), Timeout(0))) error.message += ": " + why->text();
    return error;
  }

  std::shared_ptr<zmq::context_t> context_;
  std::string uri_;
  std::optional<detail::OwnerSocket> own_socket_;  // nothing: requests go to uri_
  std::shared_ptr<const CurveIdentity> identity_;
  std::mutex mutex_;
  std::condition_variable free_;
  bool busy_ = false;  // guarded by mutex_
  // monitor_ and socket_ belong to the thread that has the turn. Null until the first request and after a
  // failed one.
  SocketMonitor monitor_;
  const HomeProcess home_;
  ZmqSocket socket_;
};

}  // namespace lightq::inline v1
