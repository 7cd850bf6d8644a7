/// Makes the n-th call of an operation fail, for every n until the operation completes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "explorer/log_client.hpp"
#include "explorer/small_random.hpp"

namespace lightq::test {

/// The way in which the call fails.
enum class CallFate { io_error, no_space, short_write, kill };

struct FailingCallsResult {
  std::uint64_t cases = 0;   ///< operations during which one call failed
  std::uint64_t states = 0;  ///< disks after a power cut that were compared
  std::optional<std::string> violation;
};

/// Tries every call of a dozen operations with every fate: appends, new segments, flushes, jobs, drops,
/// recycling, commits, opening. Each time a new log is prepared and the call fails. The log must then keep
/// its promises: everything appended is read, the next append succeeds, and a power cut loses nothing
/// durable. Thread: one.
class FailingCalls {
 public:
  explicit FailingCalls(std::uint64_t seed) : random_(seed), seed_(seed) {}
  FailingCallsResult run();

 private:
  struct Operation {
    const char* name;
    std::function<void(LogClient&)> prepare;
    std::function<void(LogClient&)> run;
  };
  static std::vector<Operation> operations();
  bool fail_call(const Operation& operation, CallFate fate, std::uint64_t n);
  bool run_failing(LogClient& client, const Operation& operation, CallFate fate, std::uint64_t n);
  void go_on(LogClient& client, bool killed);
  void cut_power(LogClient& client, bool kill_first);

  SmallRandom random_;
  std::uint64_t seed_;
  bool sync_failed_ = false;
  FailingCallsResult result_;
};

}  // namespace lightq::test
