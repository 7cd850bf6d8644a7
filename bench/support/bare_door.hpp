/// A process that does with strangers the least that any server has to. Layer: bench support.
#pragma once

#include <optional>
#include <string>

#include "support/child_process.hpp"

namespace lightq::bench {

/// Takes every connection, says nothing, and closes who has said all of 16 bytes, who has gone, and who has
/// been there for five seconds. What a crowd costs a machine with it, it costs beside any server. Killed and
/// reaped by the destructor.
class BareDoor {
 public:
  /// Listens on a port of 127.0.0.1 that was free. Fork rules as of ChildProcess.
  static Result<BareDoor> open();

  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  BareDoor(ChildProcess process, std::string uri) : process_(std::move(process)), uri_(std::move(uri)) {}
  ChildProcess process_;
  std::string uri_;
};

}  // namespace lightq::bench
