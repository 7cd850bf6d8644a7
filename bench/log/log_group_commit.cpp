/// Suite `log`: many writers that each wait for the disk, beside one writer. Layer: bench.
#include <atomic>
#include <mutex>
#include <thread>

#include "log/log_suite.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t message_bytes = 100;
constexpr int writers_max = 16;

/// Lets `writers` threads append during `time`; each waits until its message is durable. Returns messages per
/// second.
double rate_with(Queue& queue, int writers, std::chrono::milliseconds time) {
  std::atomic<std::uint64_t> appended{0};
  std::atomic<bool> done{false};
  std::mutex lock;
  std::string problem;
  const std::vector<std::byte> message(message_bytes, std::byte{'m'});
  const std::uint64_t begin = now_ns();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < writers; ++i) {
      threads.emplace_back([&] {
        while (!done) {
          const Result<Offset> offset = queue.enqueue(ByteView(message));
          if (!offset) {
            const std::scoped_lock guard(lock);
            problem = offset.error().text();
            return;
          }
          ++appended;
        }
      });
    }
    std::this_thread::sleep_for(time);
    done = true;
  }
  const std::uint64_t took = now_ns() - begin;
  if (!problem.empty()) throw std::runtime_error(problem);
  check(queue.durable_offset() >= queue.next_offset(), "an append returned before its message was durable");
  return static_cast<double>(appended) * 1e9 / static_cast<double>(took);
}

}  // namespace

void measure_group_commit(LogSuite& suite) {
  const Scratch scratch;
  QueueOptions options = recycling_options(8 * MiB, 4);
  options.flush = FlushPolicy::every_append();
  options.many_writers = true;
  Queue queue = Queue::open(scratch.path("queue"), options).value_or_throw();
  const auto time = std::chrono::milliseconds(suite.options().quick ? 300 : 1500);
  std::vector<double> many;
  std::vector<double> one;
  suite.alternate(
      suite.options().rounds(), [&] { return rate_with(queue, writers_max, time); },
      [&] { return rate_with(queue, 1, time); }, many, one);
  suite.add(compare("group_commit_16", "16 writers, each waits for the disk", "msg/s", Better::more, many,
                    "one writer of ours", one),
            8);
}

}  // namespace lightq::bench
