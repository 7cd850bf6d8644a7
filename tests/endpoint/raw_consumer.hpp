/// A raw consumer of an endpoint, over TCP or a Unix socket. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "net/socket.hpp"

namespace lightq::test {

/// Parses the stream by itself, so that the broker's code does not check itself. Never waits.
class RawConsumer {
 public:
  explicit RawConsumer(const std::string& uri)
      : descriptor_(socket(uri.starts_with("tcp:") ? AF_INET : AF_UNIX, SOCK_STREAM, 0)) {
    if (uri.starts_with("tcp:")) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1))));
      connect_to(address);
    } else {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      const std::string path = uri.substr(std::strlen("ipc://"));
      path.copy(address.sun_path, sizeof address.sun_path - 1);
      connect_to(address);
    }
  }

  /// Returns the complete messages since the last call.
  std::vector<std::string> receive() {
    look();
    std::vector<std::string> messages;
    while (true) {
      if (stream_.size() < 4) return messages;
      std::size_t length = 0;
      for (std::size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(stream_[i]);
      if (stream_.size() - 4 < length) return messages;
      messages.push_back(stream_.substr(4, length));
      stream_.erase(0, 4 + length);
    }
  }
  /// Reads available bytes. Returns true if the connection is closed.
  bool closed() {
    look();
    return closed_;
  }
  void send(const std::string& bytes) const {
    ::send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void close() { descriptor_.reset(); }

 private:
  template <typename Address>
  void connect_to(const Address& address) const {
    EXPECT_EQ(::connect(descriptor_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  void look() {
    std::string bytes(256 * 1024, '\0');
    while (!closed_) {
      const auto got = recv(descriptor_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0 && errno != ECONNRESET) return;
      if (got <= 0) closed_ = true;
      if (got > 0) stream_.append(bytes, 0, static_cast<std::size_t>(got));
    }
  }

  broker::UniqueFd descriptor_;
  std::string stream_;
  bool closed_ = false;
};

}  // namespace lightq::test
