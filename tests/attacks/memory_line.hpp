/// A connection in memory to an authorizer of plain endpoints.
#pragma once

#include <memory>
#include <utility>

#include "access/connection_authorizer.hpp"
#include "attacks/line.hpp"
#include "zmtp/zmtp_handshake.hpp"

namespace lightq::test {

/// Performs the server's handshake with the code that connections use. The server's socket is a PULL socket.
/// Lifetime: the authorizer outlives the line.
class MemoryLine final : public Line {
 public:
  explicit MemoryLine(const broker::ConnectionAuthorizer& authorizer) {
    handshake_.guard(&authorizer);
    handshake_.begin(said_);
  }
  Bytes say(ByteView bytes, const Enough& /*enough*/) override {
    come_.insert(come_.end(), bytes.begin(), bytes.end());
    const std::size_t used = handshake_.take(come_, said_);
    come_.erase(come_.begin(), come_.begin() + static_cast<std::ptrdiff_t>(used));
    return std::exchange(said_, {});
  }
  [[nodiscard]] bool admitted() const override { return handshake_.complete(); }

 private:
  broker::ZmtpHandshake handshake_{"PULL", {"PUSH"}};
  Bytes come_;
  Bytes said_;
};

/// Returns a function that connects to `authorizer`.
inline Connect connect_to(const broker::ConnectionAuthorizer& authorizer) {
  return [&authorizer] { return std::make_unique<MemoryLine>(authorizer); };
}

}  // namespace lightq::test
