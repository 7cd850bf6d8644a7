/// Connects PUSH sockets in a separate process and times each until its handshake has succeeded. Layer: bench
/// support.
#include "support/load/connect_times.hpp"

#include <stdexcept>

#include <lightq/detail/socket_monitor.hpp>

#include "support/child_process.hpp"
#include "support/stream_roles.hpp"

namespace lightq::bench {
namespace {

/// Returns the time in µs. Throws if the socket is not admitted.
double connect_once(zmq::context_t& context, const std::string& uri, const StreamTicket& ticket,
                    const StreamKeys& keys) {
  zmq::socket_t socket = client_socket(context, zmq::socket_type::push);
  show_ticket(socket, ticket, keys);
  SocketMonitor monitor;
  monitor.open(
      context, socket,
      ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  const std::uint64_t began = now_ns();
  socket.connect(uri);
  zmq::pollitem_t item{monitor.socket().handle(), 0, ZMQ_POLLIN, 0};
  zmq::poll(&item, 1, stream_patience);
  const std::uint64_t ended = now_ns();
  const int event = monitor.next();
  SocketMonitor::stop(socket);
  if (event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED) throw std::runtime_error("a socket was not let in");
  return static_cast<double>(ended - began) / 1e3;
}

}  // namespace

Result<std::vector<double>> measure_connects(const std::string& uri, const StreamTicket& ticket,
                                             const StreamKeys& keys, int count) {
  SharedArray<double> times(static_cast<std::size_t>(count));
  Result<ChildProcess> child = ChildProcess::start([&] {
    try {
      zmq::context_t context(1);
      for (std::size_t i = 0; i < times.size(); ++i) times[i] = connect_once(context, uri, ticket, keys);
      return 0;
    } catch (const std::exception&) {
      return 1;
    }
  });
  if (!child) return child.error();
  std::vector<ChildProcess> children;
  children.push_back(std::move(child).value());
  const auto ended =
      wait_for_all(children, {"the connecting process"}, Clock::now() + std::chrono::seconds(60));
  if (!ended) return ended.error();
  return std::vector<double>(&times[0], &times[0] + times.size());
}

}  // namespace lightq::bench
