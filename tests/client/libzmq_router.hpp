/// The broker's end of sessions over ZeroMQ for the client's tests, implemented by libzmq.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

namespace lightq::test {

/// A ROUTER socket with its own context. Its calls wait for at most 10 s.
class LibzmqRouter {
 public:
  struct Options {
    int messages_max = 1000;
    int receive_buffer = 0;
    std::string uri = "tcp://127.0.0.1:*";
    std::string secret_key = {};  ///< the CURVE secret key; empty: mechanism NULL
    /// The interval of PINGs; heartbeat_timeout_ms is the wait for any answer after one.
    int heartbeat_ms = 0;
    int heartbeat_timeout_ms = 0;
  };
  LibzmqRouter() : LibzmqRouter(Options{}) {}
  explicit LibzmqRouter(const Options& options) {
    constexpr int patience_ms = 10'000;
    socket_.set(zmq::sockopt::rcvtimeo, patience_ms);
    socket_.set(zmq::sockopt::sndtimeo, patience_ms);
    socket_.set(zmq::sockopt::rcvhwm, options.messages_max);
    if (options.receive_buffer > 0) socket_.set(zmq::sockopt::rcvbuf, options.receive_buffer);
    if (!options.secret_key.empty()) {
      socket_.set(zmq::sockopt::curve_server, true);
      socket_.set(zmq::sockopt::curve_secretkey, options.secret_key);
    }
    if (options.heartbeat_ms > 0) {
      socket_.set(zmq::sockopt::heartbeat_ivl, options.heartbeat_ms);
      socket_.set(zmq::sockopt::heartbeat_timeout, options.heartbeat_timeout_ms);
    }
    socket_.bind(options.uri);
  }
  [[nodiscard]] std::string uri() const { return socket_.get(zmq::sockopt::last_endpoint); }
  /// Returns the next message, which has one part.
  std::string receive() {
    zmq::message_t part;
    if (!socket_.recv(peer_)) return "nothing came";
    if (!peer_.more() || !socket_.recv(part)) return "nothing came behind the peer's name";
    EXPECT_FALSE(part.more());
    return part.to_string();
  }
  /// Sends to the peer of the last received message.
  void send(const std::vector<std::string>& parts) {
    zmq::message_t peer;
    peer.copy(peer_);
    ASSERT_TRUE(socket_.send(peer, zmq::send_flags::sndmore));
    for (std::size_t at = 0; at < parts.size(); ++at) {
      const bool last = at + 1 == parts.size();
      ASSERT_TRUE(
          socket_.send(zmq::buffer(parts[at]), last ? zmq::send_flags::none : zmq::send_flags::sndmore));
    }
  }
  /// Closes the socket after sending all messages.
  void close() { socket_.close(); }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_{context_, zmq::socket_type::router};
  zmq::message_t peer_;
};

inline std::string pattern(std::size_t bytes) {
  std::string text(bytes, ' ');
  for (std::size_t at = 0; at < bytes; ++at) text[at] = static_cast<char>(at * 31 + at / 251);
  return text;
}

}  // namespace lightq::test
