/// A TCP relay between the clients of sessions and a broker that does to their connections what networks do:
/// cuts, delays, splits, joins, stalls, duplicates and spoils.
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

/// What a proxy has done so far.
struct FaultCounts {
  std::uint64_t connections = 0;
  std::uint64_t cuts = 0;
  std::uint64_t stalls = 0;  ///< directions
  std::uint64_t replays = 0;
  std::uint64_t flips = 0;
  std::uint64_t bytes = 0;  ///< passed on
  std::uint64_t open = 0;   ///< connections of which a side has not ended
};

/// Listens on 127.0.0.1, port 0; one thread relays. Each connection gets a plan, in the order they come. Any
/// thread may call.
class FaultProxy {
 public:
  /// `plan`: called on the proxy's thread, once for each connection.
  explicit FaultProxy(std::function<FaultPlan()> plan);
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;
  ~FaultProxy();

  /// The proxy's address, for who would connect to `uri` (`tcp://…`), where connections go from now on.
  std::string in_front_of(const std::string& uri);
  [[nodiscard]] FaultCounts counts() const;
  /// Waits until both sides of every connection have ended; false: not in time.
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
  std::list<std::unique_ptr<Link>> links_;  // of the thread
  FaultCounts done_;                        // likewise

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::string target_;  // guarded by mutex_
  FaultCounts counts_;  // likewise
  bool stops_ = false;  // likewise
  std::thread thread_;
};

}  // namespace lightq::test
