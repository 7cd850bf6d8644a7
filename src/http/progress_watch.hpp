/// Finds topics and groups that do not move although they could. Layer: http.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <lightq/base/limits.hpp>
#include <lightq/protocol/control.hpp>

#include "http/http_loop.hpp"

namespace lightq::broker {

/// The result of a round. Plain data.
struct Standstill {
  std::size_t groups = 0;   ///< with ready messages and free consumers, and without a delivery
  std::size_t flushes = 0;  ///< topics in files with messages that do not become durable
  std::size_t on_disk = 0;  ///< topics with producers that wait for the disk
};

/// Compares the statistics of topics from round to round. A topic or group stands still if it could move, and
/// has not since a round that began at least `stall` ago. So the first round finds nothing, and rounds must
/// be at least that far apart. The memory grows with the number of topics and groups that could move. Thread:
/// one.
class ProgressWatch {
 public:
  using Time = HttpLoop::Clock::time_point;

  /// `flushes`: topics in files become durable without a stop of the broker.
  explicit ProgressWatch(bool flushes,
                         std::chrono::milliseconds stall = std::chrono::milliseconds(limits::ready_stall_ms))
      : flushes_(flushes), stall_(stall) {}

  void begin(Time now);
  void see(const protocol::TopicStats& topic);
  [[nodiscard]] Standstill finish();

 private:
  /// The last state of a topic or group that could move. It moves if its state changes.
  struct Seen {
    std::uint64_t state = 0;
    Time since;
    std::uint64_t round = 0;
  };

  [[nodiscard]] bool stands_still(std::string name, std::uint64_t state);

  const bool flushes_;
  const std::chrono::milliseconds stall_;
  std::unordered_map<std::string, Seen> seen_;
  Standstill found_;
  Time now_;
  std::uint64_t round_ = 0;
};

}  // namespace lightq::broker
