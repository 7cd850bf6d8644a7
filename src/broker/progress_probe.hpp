/// Finds out whether bytes still become durable. Layer: broker.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include <lightq/base/result.hpp>

#include "broker/reactor_pool.hpp"
#include "http/resources/health_resource.hpp"

namespace lightq::broker {

/// Takes the way of a message that is appended and synced: by the loop of each reactor, the disk's thread,
/// the disk of the data directory, and back to the reactor. It writes a file of a few bytes that is removed
/// again. While a probe has not come back, no other begins, so that a disk that hangs collects none. Thread:
/// one calls `run`.
class ProgressProbe {
 public:
  /// Lifetime: the pool outlives the probe.
  ProgressProbe(ReactorPool& reactors, std::filesystem::path directory);

  /// Calls `done` once, on any thread; never if the broker stops first. Errors: timeout (the last probe has
  /// not come back), busy, io_error, no_space.
  void run(const HealthResource::ProbeDone& done);

 private:
  struct Round;

  ReactorPool& reactors_;
  const std::filesystem::path directory_;
  std::shared_ptr<Round> last_;
};

}  // namespace lightq::broker
