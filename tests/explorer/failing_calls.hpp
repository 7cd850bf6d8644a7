/// Makes the n-th call of an operation fail, for every n until it completes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "explorer/log_client.hpp"
#include "explorer/small_random.hpp"

namespace lightq::test {

/// What happens to the call.
enum class CallFate { io_error, no_space, short_write, kill };

struct FailingCallsResult {
  std::uint64_t cases = 0;   ///< operations of which one call failed
  std::uint64_t states = 0;  ///< disks after a power cut that were compared afterwards
  std::optional<std::string> violation;
};

/// For each of a dozen operations (appends, rolling, flushing, jobs, dropping, recycling, commits, opening),
/// for each of its calls and each fate: a fresh log gets there, the call fails, and the log must keep its
/// promises: everything appended is read, the next append works, nothing durable is lost in a power cut. One
/// thread.
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
