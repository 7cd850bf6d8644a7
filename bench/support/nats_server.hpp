/// A nats-server process with JetStream. Layer: bench support.
#pragma once

#include <memory>
#include <string>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace lightq::bench {

/// A nats-server on 127.0.0.1 with a free port and temporary files. It keeps the unread messages of a
/// slow consumer, instead of closing its connection.
class NatsServer {
 public:
  /// Starts the server and waits until it names its port. Error: it did not start.
  static Result<std::unique_ptr<NatsServer>> start(const std::string& binary);
  [[nodiscard]] const std::string& uri() const { return uri_; }

 private:
  NatsServer() = default;
  Result<void> wait_until_ready();
  TempDir directory_;
  std::optional<ChildProcess> process_;  // ends before its directory is removed
  std::string uri_;
};

}  // namespace lightq::bench
