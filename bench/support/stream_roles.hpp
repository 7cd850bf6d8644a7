/// The two ends of a stream, each the whole work of one process. Layer: bench support.
#pragma once

#include <cstdint>
#include <zmq.hpp>

#include "support/shared_memory.hpp"
#include "support/stream_run.hpp"
#include "support/test_message.hpp"

namespace lightq::bench {

/// Gives a socket its ticket or its CURVE keys; a registered key replaces a ticket. Call it before the socket
/// connects or binds. Throws zmq::error_t.
inline void show_ticket(zmq::socket_t& socket, const StreamTicket& ticket, const StreamKeys& keys) {
  if (!keys.secret_key.empty()) {
    if (keys.server_key.empty()) socket.set(zmq::sockopt::curve_server, true);
    if (!keys.server_key.empty()) socket.set(zmq::sockopt::curve_serverkey, keys.server_key);
    socket.set(zmq::sockopt::curve_publickey, keys.public_key);
    socket.set(zmq::sockopt::curve_secretkey, keys.secret_key);
  } else if (!ticket.id.empty()) {
    socket.set(zmq::sockopt::plain_username, ticket.id);
    socket.set(zmq::sockopt::plain_password, ticket.secret);
  }
}

/// Shared memory in which both ends record results for the parent and for each other.
struct StreamBoard {
  char consumer_uri[256];  ///< the consumer's address if there is no process in between
  char fault[256];         ///< the first fault that an end found
  std::uint64_t first_receive_ns;
  std::uint64_t last_receive_ns;
  std::uint64_t send_begin_ns;
  std::uint64_t send_end_ns;
};

/// The shared state of one run. The parent creates it before it forks the ends.
struct StreamRun {
  StreamRun(const StreamEnds& stream_ends, const StreamPlan& stream_plan);
  [[nodiscard]] bool direct() const { return ends.consumer_uri.empty(); }
  [[nodiscard]] bool paced() const { return plan.messages_per_second > 0; }
  [[nodiscard]] StreamBoard& seen() { return board[0]; }
  /// Records a fault, unless there is one already. Returns the exit status for the role.
  int fail(const std::string& fault);

  StreamEnds ends;
  StreamPlan plan;
  MessagePattern pattern;
  std::uint64_t id = 0;
  SharedArray<StreamBoard> board{1};
  SharedArray<std::uint64_t> latency_ns;  ///< by sequence; only for a paced run
  SharedEvent listening;                  ///< the consumer's socket is bound or connected
  SharedEvent path_open;                  ///< a probe has arrived
};

/// How long an end waits for the other before it gives up.
inline constexpr std::chrono::milliseconds stream_patience{10'000};

/// Returns a socket with the options that all clients' sockets have in every measurement.
zmq::socket_t client_socket(zmq::context_t& context, zmq::socket_type type);

/// Opens the route with probes, then sends the plan's messages. Returns the exit status.
int produce(StreamRun& run);
/// Receives and checks until the end or the first fault. Returns the exit status.
int consume(StreamRun& run);

}  // namespace lightq::bench
