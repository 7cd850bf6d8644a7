/// A TCP relay between session clients and a broker that imitates the faults of networks. It cuts, delays,
/// splits, joins, stalls, duplicates and corrupts the relayed bytes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "support/fault_plan.hpp"

namespace lightq::test {

/// Counts of the proxy's actions so far.
struct FaultCounts {
  std::uint64_t connections = 0;
  std::uint64_t cuts = 0;
  std::uint64_t stalls = 0;  ///< stalled directions
  std::uint64_t replays = 0;
  std::uint64_t flips = 0;
  std::uint64_t bytes = 0;  ///< bytes that were passed on
  std::uint64_t open = 0;   ///< connections with a side that has not ended
};

/// Listens on 127.0.0.1, port 0. One thread relays all connections. Each connection gets a plan in the order
/// of arrival. Thread: any may call.
class FaultProxy {
 public:
  /// `plan` is called on the proxy's thread, once for each connection.
  explicit FaultProxy(std::function<FaultPlan()> plan);
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;
  ~FaultProxy();

  /// Sets `uri` (`tcp://…`) as the target of connections from now on. Returns the proxy's address, for
  /// clients of that target.
  std::string in_front_of(const std::string& uri);
  [[nodiscard]] FaultCounts counts() const;
  /// Waits until both sides of every connection have ended. Returns false after the timeout.
  bool wait_until_idle(std::chrono::milliseconds timeout);

 private:
  class Link;
  using Time = std::chrono::steady_clock::time_point;

  void run();
  void accept_one();
  [[nodiscard]] int wait_ms(Time until) const;
  void publish();

  std::function<FaultPlan()> plan_;
  int listener_ = -1;
  int wake_ = -1;
  std::string uri_;
  std::list<std::unique_ptr<Link>> links_;  // used by the relay thread only
  FaultCounts done_;                        // used by the relay thread only

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::string target_;  // guarded by mutex_
  FaultCounts counts_;  // guarded by mutex_
  bool stops_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace lightq::test
