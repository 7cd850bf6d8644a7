/// Runs zmq_proxy in a child process. Layer: bench support.
#include "support/proxy_route.hpp"

#include <cstring>
#include <zmq.hpp>

#include "support/shared_memory.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds start_time_max{10};

struct ProxyBoard {
  char producer_uri[256];
  char consumer_uri[256];
};

void bind_anywhere(zmq::socket_t& socket, int high_water_messages, char (&uri)[256]) {
  socket.set(zmq::sockopt::sndhwm, high_water_messages);
  socket.set(zmq::sockopt::rcvhwm, high_water_messages);
  socket.bind("tcp://127.0.0.1:*");
  std::strncpy(uri, socket.get(zmq::sockopt::last_endpoint).c_str(), sizeof uri - 1);
}

int run_proxy(int high_water_messages, ProxyBoard& board, SharedEvent& ready) {
  zmq::context_t context(1);
  zmq::socket_t in(context, zmq::socket_type::pull);
  zmq::socket_t out(context, zmq::socket_type::push);
  bind_anywhere(in, high_water_messages, board.producer_uri);
  bind_anywhere(out, high_water_messages, board.consumer_uri);
  ready.raise();
  zmq::proxy(in, out);  // returns only if the process is killed
  return 0;
}

}  // namespace

Result<std::unique_ptr<ProxyRoute>> ProxyRoute::start(int high_water_messages) {
  SharedArray<ProxyBoard> board(1);
  SharedEvent ready;
  Result<ChildProcess> process =
      ChildProcess::start([&] { return run_proxy(high_water_messages, board[0], ready); });
  if (!process) return process.error();
  if (!ready.wait_until(Clock::now() + start_time_max)) return failure("zmq_proxy did not start");
  StreamEnds ends{board[0].producer_uri, board[0].consumer_uri};
  return std::unique_ptr<ProxyRoute>(new ProxyRoute(std::move(process).value(), std::move(ends)));
}

}  // namespace lightq::bench
