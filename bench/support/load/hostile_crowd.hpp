/// A process with many hostile connections: silent, slow, sending garbage, or connecting and disconnecting.
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
  /// tcp://HOST:PORT with a numeric IPv4 host. The connections are spread over all.
  std::vector<std::string> uris;
  std::size_t connections = 10'000;
};

/// Opens hostile connections, spread over all addresses; a quarter of them each is
/// - silent: sends nothing;
/// - slow: sends a ZeroMQ greeting, one byte per 100 ms;
/// - garbage: sends 256 random bytes immediately, and waits;
/// - restless: connects, and disconnects immediately.
///
/// A connection that has ended is made again after two seconds. The destructor kills and reaps the process.
class HostileCrowd {
 public:
  /// Starts the process, and waits until each of its connections has been made once. Fork rules: as of
  /// ChildProcess.
  static Result<std::unique_ptr<HostileCrowd>> start(const HostilePlan& plan);
  HostileCrowd(const HostileCrowd&) = delete;
  HostileCrowd& operator=(const HostileCrowd&) = delete;
  ~HostileCrowd();

  struct Counts {
    std::uint64_t made = 0;    ///< number of connections made so far
    std::uint64_t closed = 0;  ///< the number of these that the broker closed
  };
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] pid_t id() const { return process_->id(); }

 private:
  struct Shared;
  explicit HostileCrowd(Shared* shared) : shared_(shared) {}
  Shared* shared_;  // shared with the process
  std::optional<ChildProcess> process_;
};

}  // namespace lightq::bench
