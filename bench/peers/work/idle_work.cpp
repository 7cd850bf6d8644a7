/// Measures memory and processor time of an idle server. Layer: bench peers.
#include "peers/work/idle_work.hpp"

#include <algorithm>
#include <atomic>

#include "peers/work/run_children.hpp"
#include "support/process_usage.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds making_time_max{60};
constexpr std::chrono::seconds keeping_time_max{600};  // longer than any measurement
constexpr std::chrono::seconds settle_time_max{2};
constexpr double mebibyte = 1 << 20;

void make_queues(PeerServer& server, int queues) {
  for (int i = 0; i < queues; ++i) {
    QueueTerms queue;
    queue.name = "idle-" + std::to_string(i);
    queue.storage = Storage::standard;
    queue.pattern = Pattern::idle;
    server.make_queue(queue);
  }
}

}  // namespace

IdleUse run_idle_work(PeerServer& server, int queues, double seconds) {
  RunChildren owner(making_time_max);
  SharedArray<std::atomic<bool>> made(1);
  if (queues > 0) {
    owner.start("making queues", [&] {
      make_queues(server, queues);
      made[0] = true;
      sleep_exactly(keeping_time_max);  // keeps its connections; is killed by the destructor
    });
    owner.wait_until([&] { return made[0].load(); });
  }
  const std::chrono::nanoseconds time(static_cast<std::int64_t>(seconds * 1e9));
  sleep_exactly(std::min<std::chrono::nanoseconds>(time, settle_time_max));
  const double before = cpu_seconds_of(server.process()).value_or_throw();
  sleep_exactly(time);
  IdleUse use;
  use.cpu_percent = 100 * (cpu_seconds_of(server.process()).value_or_throw() - before) / seconds;
  use.resident_mebibytes =
      static_cast<double>(resident_bytes_of(server.process()).value_or_throw()) / mebibyte;
  return use;
}

}  // namespace lightq::bench
