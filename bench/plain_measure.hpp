/// Suite `plain`: the routes and rounds to measure, and the results. Layer: bench.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/route.hpp"

namespace lightq::bench {

/// The amount of work.
struct PlainOptions {
  bool quick = false;
  bool references_only = false;  ///< omit LightQ
  std::string broker_binary;

  [[nodiscard]] int rounds() const { return quick ? 2 : 5; }
  [[nodiscard]] int latency_rounds() const { return quick ? 2 : 7; }
  [[nodiscard]] double run_seconds() const { return quick ? 0.5 : 1.75; }
};

/// The routes, by the keys used in Measurements.
namespace way {
inline constexpr const char* direct = "direct";
inline constexpr const char* proxy = "proxy";             ///< zmq_proxy with libzmq's default high-water mark
inline constexpr const char* proxy_deep = "proxy-10000";  ///< zmq_proxy with the clients' high-water mark
inline constexpr const char* queue = "queue";
inline constexpr const char* file = "file";
inline constexpr const char* file_keeping = "file-keeping";  ///< `file` without retention
}  // namespace way

/// A message size, and a rate for latency (0: as fast as possible, for throughput).
struct Load {
  std::size_t message_bytes = 0;
  double messages_per_second = 0;
  friend auto operator<=>(const Load&, const Load&) = default;
};

std::vector<Load> throughput_loads();
std::vector<Load> latency_loads();

/// One value per round, without the warm-up.
struct Series {
  std::vector<double> messages_per_second;
  std::vector<double> latency_p50_us;
  std::vector<double> latency_p99_us;
  std::vector<double> cpu_seconds_per_million;  ///< of the process in between, per million messages
};

struct Measurements {
  /// By route and load. Contains only routes that never failed.
  std::map<std::pair<std::string, Load>, Series> series;
  std::map<std::string, double> peak_mebibytes;  ///< of the process in between, by route
  std::vector<std::string> failures;
  /// Returns the series; null if it could not be measured.
  [[nodiscard]] const Series* find(const std::string& way_key, const Load& load) const;
};

/// Starts the processes, runs every load in alternating rounds, and stops everything. A route that fails is
/// noted and not tried again. Progress goes to standard error.
Measurements measure_plain(const PlainOptions& options);

}  // namespace lightq::bench
