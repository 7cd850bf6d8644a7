/// Finds out whether bytes still become durable. Layer: topic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include <lightq/base/result.hpp>

#include "topic/reactor_context.hpp"

namespace lightq::broker {

/// The state of the disk after it has made bytes durable. Plain data.
struct ProbeResult {
  std::uint64_t free_bytes = 0;  ///< of the disk, for this process
};

/// Takes the way of a message that is appended and synced: by the loop of each reactor, the disk's thread and
/// the disk of a directory, to the reactor again. It writes a file of a few bytes, which it removes. No probe
/// begins before the last one has ended, so that a disk that hangs collects none. Thread: one calls `run`.
class ProgressProbe {
 public:
  using Done = std::function<void(Result<ProbeResult>)>;

  /// Lifetime: the contexts outlive the probe.
  ProgressProbe(std::vector<ReactorContext*> reactors, std::filesystem::path directory);

  /// Calls `done` once, on any thread; never if the reactors stop first. Errors: timeout (the last probe has
  /// not ended), busy, io_error, no_space.
  void run(const Done& done);

 private:
  struct Round;

  const std::vector<ReactorContext*> reactors_;
  const std::filesystem::path directory_;
  std::shared_ptr<Round> last_;
};

}  // namespace lightq::broker
