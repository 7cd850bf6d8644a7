/// The reference: libzmq's zmq_proxy, PULL to PUSH, in a separate process. Layer: bench support.
#pragma once

#include <memory>

#include "support/child_process.hpp"
#include "support/route.hpp"

namespace lightq::bench {

class ProxyRoute : public Route {
 public:
  /// Starts the proxy with this high-water mark on both of its sockets. Error: it did not start.
  static Result<std::unique_ptr<ProxyRoute>> start(int high_water_messages);

  Result<void> prepare(const std::string&) override { return {}; }
  Result<StreamEnds> open() override { return ends_; }
  Result<void> close(const StreamEnds&) override { return {}; }
  [[nodiscard]] std::optional<pid_t> process() const override { return process_.id(); }

 private:
  ProxyRoute(ChildProcess process, StreamEnds ends) : process_(std::move(process)), ends_(std::move(ends)) {}
  ChildProcess process_;
  StreamEnds ends_;
};

}  // namespace lightq::bench
