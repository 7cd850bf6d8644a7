/// Layer: control.
#include "broker/control/control_server.hpp"

#include <string.h>

#include <string_view>
#include <utility>
#include <zmq.hpp>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/json.hpp>

namespace lightq::broker {

namespace {

constexpr int requests_per_turn = 64;
constexpr int handshake_ms = 1000;
constexpr int linger_ms = 500;
/// Per client; more than all requests that can be under way, as their answers may come in one burst.
constexpr int answers_unread_max = 8 * static_cast<int>(limits::requests_waiting_max);

std::string_view text_of(const zmq::message_t& message) {
  return {static_cast<const char*>(message.data()), message.size()};
}

/// libzmq takes a port above 65,535 modulo 65,536.
bool is_port_out_of_range(const std::string& uri) {
  const auto digits = uri.substr(uri.rfind(':') + 1);
  if (!uri.starts_with("tcp://") || digits.find_first_not_of("0123456789") != std::string::npos) return false;
  return digits.size() > 5 || (!digits.empty() && std::stoul(digits) > 65535);
}

}  // namespace

/// A context of its own, so that closing it waits for nobody else's sockets.
struct ControlServer::Socket {
  zmq::context_t context{1};
  zmq::socket_t router{context, zmq::socket_type::router};
};

/// Whom to answer.
struct ControlServer::Envelope {
  std::string peer;
  bool delimiter = false;
};

struct ControlServer::Incoming {
  Envelope from;
  std::size_t bodies = 0;  ///< parts after the envelope
  zmq::message_t body;     ///< the first of them
};

ControlServer::ControlServer(EventLoop& loop, LogSink& sink, Handle handle)
    : loop_(loop), sink_(sink), handle_(std::move(handle)) {}

ControlServer::~ControlServer() {
  if (accepting_) loop_.unwatch(socket_->router.get(zmq::sockopt::fd), *this);
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(EventLoop& loop, LogSink& sink,
                                                           const std::string& uri, Handle handle) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, sink, std::move(handle)));
  if (auto bound = server->bind(uri); !bound) return bound.error();
  return server;
}

Result<void> ControlServer::bind(const std::string& uri) {
  if (is_port_out_of_range(uri)) {
    return Error{ErrorCode::invalid_argument,
                 "control socket: cannot bind " + uri + ": a port is at most 65535"};
  }
  try {
    socket_ = std::make_unique<Socket>();
    auto& router = socket_->router;
    router.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(limits::request_bytes_hard_max));
    router.set(zmq::sockopt::handshake_ivl, handshake_ms);
    router.set(zmq::sockopt::linger, linger_ms);
    router.set(zmq::sockopt::sndhwm, answers_unread_max);
    // With a domain libzmq refuses peers of ZMTP 1 and 2, which it would otherwise take garbage for; nobody
    // handles the domain, so the NULL mechanism goes on without asking.
    router.set(zmq::sockopt::zap_domain, "lightq-control");
    router.set(zmq::sockopt::ipv6, uri.find('[') != std::string::npos);
    router.bind(uri);
    bound_uri_ = router.get(zmq::sockopt::last_endpoint);
    return {};
  } catch (const zmq::error_t& error) {
    const auto code = error.num() == EADDRINUSE ? ErrorCode::address_in_use
                      : error.num() == EINVAL || error.num() == ENODEV || error.num() == EPROTONOSUPPORT
                          ? ErrorCode::invalid_argument
                          : ErrorCode::io_error;
    return Error{code, "control socket: cannot bind " + uri + ": " + error.what()};
  }
}

Result<void> ControlServer::accept() {
  auto watched = loop_.watch(socket_->router.get(zmq::sockopt::fd), *this);
  if (!watched) return watched;
  accepting_ = true;
  loop_.call_soon(*this);  // for what came before: ZMQ_FD tells only of changes
  return {};
}

bool ControlServer::readable() {
  return (socket_->router.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

void ControlServer::on_ready() {
  try {
    for (int i = 0; i < requests_per_turn; ++i) {
      Incoming incoming;
      if (!receive(incoming)) break;
      dispatch(std::move(incoming));
    }
    if (readable()) loop_.call_soon(*this);
  } catch (const zmq::error_t& error) {
    sink_.error(std::string("control socket: ") + error.what());
  }
}

/// Reads one message with all its parts; keeps what matters and drops the rest. False: there is none.
bool ControlServer::receive(Incoming& incoming) {
  auto& router = socket_->router;
  zmq::message_t part;
  if (!router.recv(part, zmq::recv_flags::dontwait)) return false;
  incoming.from.peer = text_of(part);
  for (std::size_t index = 0; part.more(); ++index) {
    zmq::message_t next;
    if (!router.recv(next, zmq::recv_flags::dontwait)) break;  // parts of a message arrive together
    part = std::move(next);
    if (index == 0 && part.empty() && part.more()) {
      incoming.from.delimiter = true;
    } else if (incoming.bodies++ == 0) {
      incoming.body.copy(part);
    }
  }
  return true;
}

void ControlServer::dispatch(Incoming incoming) {
  const Envelope& from = incoming.from;
  if (incoming.bodies != 1) {
    return answer(
        from, protocol::ErrorReply{{},
                                   ErrorCode::invalid_json,
                                   "a request is one message part, not " + std::to_string(incoming.bodies)});
  }
  auto parsed = protocol::parse_request(text_of(incoming.body));
  explicit_bzero(incoming.body.data(), incoming.body.size());  // it may hold a password
  if (!parsed.request) {
    const Error& error = parsed.request.error();
    return answer(from, protocol::ErrorReply{parsed.cmd, error.code, error.text()});
  }
  if (under_way_ >= limits::requests_waiting_max) {
    return answer(from, protocol::ErrorReply{
                            parsed.cmd, ErrorCode::busy,
                            std::to_string(under_way_) + " requests are under way already; try again"});
  }
  ++under_way_;
  handle_(std::move(parsed.request).value(), [this, from](const protocol::Reply& reply) {
    --under_way_;
    answer(from, reply);
  });
}

void ControlServer::answer(const Envelope& to, const protocol::Reply& reply) {
  try {
    auto& router = socket_->router;
    const auto more = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
    const auto text = protocol::to_json(reply);
    if (!router.send(zmq::buffer(to.peer), more)) return;
    if (to.delimiter && !router.send(zmq::message_t(), more)) return;
    if (!router.send(zmq::buffer(text), zmq::send_flags::dontwait)) return;
    // Sending may have eaten the descriptor's edge for requests that came meanwhile.
    if (accepting_ && readable()) loop_.call_soon(*this);
  } catch (const zmq::error_t& error) {
    sink_.warn(std::string("control socket: an answer was not sent: ") + error.what());
  }
}

}  // namespace lightq::broker
