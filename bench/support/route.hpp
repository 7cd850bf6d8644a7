/// The connection between the producer and the consumer of a benchmark. Layer: bench support.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// A route from producer to consumer: direct, through a proxy process, or through a broker's topic. Its
/// processes live as long as the route, over many runs, so that all runs find them equally warm. One thread.
class Route {
 public:
  Route() = default;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
  virtual ~Route() = default;

  /// Prepares for runs of a new kind. `label` is new and short, of [a-z0-9-].
  virtual Result<void> prepare(const std::string& label) = 0;
  /// Returns the addresses for the ends of the next run.
  virtual Result<StreamEnds> open() = 0;
  /// Ends a run.
  virtual Result<void> close(const StreamEnds& ends) = 0;
  /// Returns the process in between, if there is one.
  [[nodiscard]] virtual std::optional<pid_t> process() const = 0;
};

/// PUSH to PULL without a process in between.
class DirectRoute : public Route {
 public:
  Result<void> prepare(const std::string&) override { return {}; }
  Result<StreamEnds> open() override { return StreamEnds{}; }
  Result<void> close(const StreamEnds&) override { return {}; }
  [[nodiscard]] std::optional<pid_t> process() const override { return std::nullopt; }
};

}  // namespace lightq::bench
