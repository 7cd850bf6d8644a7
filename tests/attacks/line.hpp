/// A client's end of a connection to a server that a test attacks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::test {

using Bytes = std::vector<std::byte>;

/// One connection. The attacks use the server only through this class, so the same attack runs on an
/// authorizer in memory and on a running broker.
class Line {
 public:
  /// Returns true if these bytes are all that the client waits for.
  using Enough = std::function<bool(ByteView)>;

  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  virtual ~Line() = default;

  /// Sends `bytes`. Returns the server's reply: all bytes until `enough` returns true, or until the server
  /// ends the connection. The reply is empty if the server had ended the connection before.
  virtual Bytes say(ByteView bytes, const Enough& enough) = 0;
  /// Returns true if the server counts the client as admitted, even if it has not sent that. Only a server
  /// that runs in memory can tell.
  [[nodiscard]] virtual bool admitted() const { return false; }
};

/// Opens a new connection to the server.
using Connect = std::function<std::unique_ptr<Line>()>;

}  // namespace lightq::test
