/// What lies between the producer and the consumer of a benchmark. Layer: bench support.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/stream_run.hpp"

namespace lightq::bench {

/// A way from producer to consumer: nothing, a proxy process, a topic of a broker. Processes behind it live
/// as long as it does, over many runs, so that all are equally warm. One thread.
class Route {
 public:
  Route() = default;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
  virtual ~Route() = default;

  /// Makes ready for runs of a new kind. `label` is fresh and short, of [a-z0-9-].
  virtual Result<void> prepare(const std::string& label) = 0;
  /// Where the ends of the next run connect.
  virtual Result<StreamEnds> open() = 0;
  /// The run is over.
  virtual Result<void> close(const StreamEnds& ends) = 0;
  /// The process in between, if there is one.
  [[nodiscard]] virtual std::optional<pid_t> process() const = 0;
};

/// PUSH to PULL with nothing in between.
class DirectRoute : public Route {
 public:
  Result<void> prepare(const std::string&) override { return {}; }
  Result<StreamEnds> open() override { return StreamEnds{}; }
  Result<void> close(const StreamEnds&) override { return {}; }
  [[nodiscard]] std::optional<pid_t> process() const override { return std::nullopt; }
};

}  // namespace lightq::bench
