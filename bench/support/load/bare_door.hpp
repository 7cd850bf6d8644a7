/// A process that does with unauthenticated peers the minimum that any server must do. Layer: bench support.
#pragma once

#include <optional>
#include <string>

#include "support/child_process.hpp"

namespace lightq::bench {

/// Accepts every connection and sends nothing. Closes a connection after 16 received bytes, when its peer
/// disconnects, or after five seconds. The cost of a crowd beside this process is the cost beside any server.
/// The destructor kills and reaps the process.
class BareDoor {
 public:
  /// Listens on a free port of 127.0.0.1. Fork rules: as of ChildProcess.
  static Result<BareDoor> open();

  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  BareDoor(ChildProcess process, std::string uri) : process_(std::move(process)), uri_(std::move(uri)) {}
  ChildProcess process_;
  std::string uri_;
};

}  // namespace lightq::bench
