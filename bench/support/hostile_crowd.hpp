/// A process full of connections that mean no good: silent, slow, talking garbage, coming and going.
/// Layer: bench support.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace lightq::bench {

struct HostilePlan {
  std::vector<std::string> uris;  ///< tcp://HOST:PORT with a numeric IPv4 host; connections take turns
  std::size_t connections = 10'000;
};

/// A quarter of the connections each, of all addresses:
/// - silent: say nothing;
/// - slow: say a ZeroMQ greeting, a byte each 100 ms;
/// - garbage: say 256 random bytes at once, and wait;
/// - restless: connect, and go again at once.
/// Whoever has gone, or was closed, comes again after two seconds. Killed and reaped by the destructor.
class HostileCrowd {
 public:
  /// Starts it, and waits until each of its connections has been made once. Fork rules as of ChildProcess.
  static Result<std::unique_ptr<HostileCrowd>> start(const HostilePlan& plan);
  HostileCrowd(const HostileCrowd&) = delete;
  HostileCrowd& operator=(const HostileCrowd&) = delete;
  ~HostileCrowd();

  struct Counts {
    std::uint64_t made = 0;    ///< connections, so far
    std::uint64_t closed = 0;  ///< of them, by the broker
  };
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] pid_t id() const { return process_->id(); }

 private:
  struct Shared;
  explicit HostileCrowd(Shared* shared) : shared_(shared) {}
  Shared* shared_;  // with the process
  std::optional<ChildProcess> process_;
};

}  // namespace lightq::bench
