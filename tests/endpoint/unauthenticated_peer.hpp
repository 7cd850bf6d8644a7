/// A peer that connects and authenticates with nothing, for tests of listeners and endpoints.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include <lightq/base/types.hpp>

#include "net/socket.hpp"

namespace lightq::broker::test {

/// A TCP connection that sends nothing by itself.
class UnauthenticatedPeer {
 public:
  /// `from` is an address of the loopback network.
  explicit UnauthenticatedPeer(const std::string& uri, std::uint32_t from = INADDR_LOOPBACK)
      : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(bind(descriptor_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1))));
    EXPECT_EQ(::connect(descriptor_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void say(ByteView bytes) {
    EXPECT_EQ(send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// Ends the sending direction. The peer still receives.
  void finish() { EXPECT_EQ(shutdown(descriptor_.get(), SHUT_WR), 0); }
  bool greeted() {
    look();
    return received_ > 0;
  }
  /// Returns the number of received bytes.
  std::size_t heard() {
    look();
    return received_;
  }
  bool closed() {
    look();
    return closed_;
  }

 private:
  void look() {
    char bytes[256];
    const auto got = recv(descriptor_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) received_ += static_cast<std::size_t>(got);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) closed_ = true;
  }

  UniqueFd descriptor_;
  std::size_t received_ = 0;
  bool closed_ = false;
};

}  // namespace lightq::broker::test
