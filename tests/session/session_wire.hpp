/// The parts of a session's connection over a pair of sockets, for tests of the parts above them. The test is
/// the peer.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/connection_input.hpp"
#include "net/connection_life.hpp"
#include "net/connection_memory.hpp"
#include "net/connection_output.hpp"
#include "net/connection_transport.hpp"
#include "net/event_loop.hpp"
#include "net/framing.hpp"
#include "net/socket.hpp"
#include "session/session_carrier.hpp"
#include "session/session_life.hpp"
#include "session/session_output.hpp"

namespace lightq::test {

/// Two connected Unix sockets.
struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours = broker::UniqueFd(ends[0]);
    peer = broker::UniqueFd(ends[1]);
  }
  broker::UniqueFd ours;
  broker::UniqueFd peer;
};

/// Composes the output of a session as SessionConnection does. Nothing reads its input.
class SessionWire final : public broker::EventLoop::Source, public broker::Framing {
 public:
  explicit SessionWire(broker::SessionCarrier carrier = broker::SessionCarrier::stream)
      : frames(output, life, carrier) {}
  ~SessionWire() override { loop.cancel_soon(*this); }

  void on_ready() override { ++calls; }
  void on_open() override {}
  std::size_t consume(std::span<std::byte> bytes) override { return bytes.size(); }

  /// Returns the bytes that have arrived at the peer since the last call. Does not wait.
  std::string received() const {
    std::string all;
    std::array<char, 64 * 1024> part;
    while (true) {
      const auto got = recv(sockets.peer.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (got <= 0) return all;
      all.append(part.data(), static_cast<std::size_t>(got));
    }
  }
  /// Lets the peer read until nothing is buffered. Returns the bytes that it has read.
  std::string drained() {
    std::string all = received();
    while (!frames.is_empty()) {
      transport.note_writable();
      frames.flush();
      all += received();
    }
    return all;
  }

  broker::EventLoop loop;
  SocketPair sockets;
  std::vector<std::byte> scratch = std::vector<std::byte>(1024);
  broker::ConnectionLife life{loop, *this};
  broker::ConnectionTransport transport{loop, *this, std::move(sockets.ours)};
  broker::ConnectionInput input{scratch};
  broker::ConnectionOutput output{transport, life, memory, *this};
  broker::ConnectionMemory memory{loop, *this, life, transport, input, output, nullptr};
  broker::SessionLife session_life{loop, *this};
  broker::SessionOutput frames;
  int calls = 0;  // that the session's parts have asked for
};

}  // namespace lightq::test
