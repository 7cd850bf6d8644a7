/// Suite `log`: the durations of the slowest appends while segments roll continuously. Layer: bench.
#include <atomic>
#include <thread>

#include "log/log_suite.hpp"
#include "log/raw_file.hpp"
#include "support/statistics.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t message_bytes = 1024;
constexpr std::uint64_t messages_per_second = 100'000;
constexpr std::uint64_t segment_bytes = 4 * MiB;  // a roll each 4,096 messages: 25 a second
constexpr std::uint64_t segments = 16;
constexpr auto sync_interval = std::chrono::milliseconds(10);

/// Returns the durations in µs of calls that are due at a fixed rate. A late call is made immediately.
template <typename Append>
std::vector<double> paced(std::uint64_t count, Append&& append) {
  std::vector<double> took(count);
  const std::uint64_t begin = now_ns();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t due = begin + i * (1'000'000'000 / messages_per_second);
    std::uint64_t before = now_ns();
    while (before < due) before = now_ns();
    append(i);
    took[i] = static_cast<double>(now_ns() - before) / 1e3;
    if (i % 65536 == 0) throw_if_stopped();
  }
  return took;
}

class PacedQueue {
 public:
  explicit PacedQueue(FlushPolicy flush) : messages_(message_bytes), queue_(open(scratch_, flush)) {}
  std::vector<double> round(std::uint64_t count) {
    return paced(count, [&](std::uint64_t) {
      const Result<Offset> appended = queue_.enqueue(messages_.at(next_++));
      if (!appended) throw std::runtime_error(appended.error().text());
    });
  }

 private:
  static Queue open(const Scratch& scratch, FlushPolicy flush) {
    QueueOptions options = recycling_options(segment_bytes, segments);
    options.flush = flush;
    return Queue::open(scratch.path("queue"), options).value_or_throw();
  }
  Scratch scratch_;
  NumberedMessages messages_;
  Queue queue_;
  std::uint64_t next_ = 0;
};

/// Runs the same load on a bare recycled file, with or without regular fdatasync calls by another thread.
std::vector<double> bare_round(const RawFile& file, std::uint64_t count, bool synced) {
  std::jthread syncer;
  if (synced) {
    syncer = std::jthread([&file](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(sync_interval);
        file.sync();
      }
    });
  }
  NumberedMessages messages(message_bytes);
  return paced(count,
               [&](std::uint64_t i) { file.write_at(messages.at(i), i * message_bytes % file.size()); });
}

struct Tail {
  std::string key;
  std::string title;
  FlushPolicy flush;
  double fraction;
  double expected_us;
};

void measure_tail(LogSuite& suite, const Tail& tail) {
  const Scratch scratch;
  PacedQueue queue(tail.flush);
  const RawFile file(scratch.path("reference"), segments * segment_bytes);
  const std::vector<std::byte> zeros(MiB);
  file.write_all_of_it(zeros);
  const std::uint64_t count = suite.options().amount(300'000);
  std::vector<double> ours;
  std::vector<double> bare;
  suite.alternate(
      suite.options().rounds(), [&] { return percentile(queue.round(count), tail.fraction); },
      [&] { return percentile(bare_round(file, count, !tail.flush.is_none()), tail.fraction); }, ours, bare);
  suite.add_expected("tail_" + tail.key, tail.title, "µs", Better::less, ours, tail.expected_us);
  suite.add(compare("tail_" + tail.key + "_vs_pwrite", tail.title, "µs", Better::less, ours,
                    "pwrite of the same to a recycled file", bare),
            0);
}

}  // namespace

void measure_tails(LogSuite& suite) {
  measure_tail(suite,
               {"unsynced_p9999", "append of 1 KB at 100,000/s while segments roll, flush `none`, p99.99",
                FlushPolicy::none(), 0.9999, 50});
  measure_tail(suite, {"synced_p99", "append of 1 KB at 100,000/s, fdatasync each 10 ms, p99",
                       FlushPolicy::every(sync_interval), 0.99, 3000});
}

}  // namespace lightq::bench
