/// A connection over a TCP or Unix socket to a server under attack.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "attacks/line.hpp"
#include "net/socket.hpp"

namespace lightq::test {

class SocketLine final : public Line {
 public:
  using Clock = std::chrono::steady_clock;

  /// Connects to `tcp://127.0.0.1:PORT` or `ipc://PATH`. `turn` runs a server that has no thread of its own;
  /// it is empty if the server has one.
  explicit SocketLine(const std::string& uri, std::function<void()> turn = {}) : turn_(std::move(turn)) {
    uri.starts_with("ipc://") ? connect_unix(uri.substr(6)) : connect_tcp(uri);
  }
  Bytes say(ByteView bytes, const Enough& enough) override {
    // An error is ignored, because the server may have ended the connection.
    static_cast<void>(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    Bytes heard;
    while (!enough(heard)) {
      if (turn_) turn_();
      pollfd ready{socket_.get(), POLLIN, 0};
      if (::poll(&ready, 1, turn_ ? 1 : 100) == 0) {
        if (Clock::now() < deadline) continue;
        ADD_FAILURE() << "the server neither replies nor ends the connection";
        break;
      }
      std::array<std::byte, 4096> part{};
      const auto got = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (got <= 0) break;  // the server has ended the connection
      heard.insert(heard.end(), part.begin(), part.begin() + got);
    }
    return heard;
  }

 private:
  void connect_tcp(const std::string& uri) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1))));
    connect(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  void connect_unix(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::memcpy(&address.sun_path[0], path.data(), path.size());
    connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  void connect(int family, const sockaddr* address, socklen_t bytes) {
    socket_ = broker::UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket_.get(), address, bytes), 0) << std::strerror(errno);
  }

  broker::UniqueFd socket_;
  const std::function<void()> turn_;
};

/// Returns a function that connects to the server at `uri`.
inline Connect connect_to(const std::string& uri, const std::function<void()>& turn = {}) {
  return [uri, turn] { return std::make_unique<SocketLine>(uri, turn); };
}

}  // namespace lightq::test
