/// Suite `log`: whether a queue becomes slower with age. Layer: bench.
#include "log/log_suite.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t message_bytes = 1024;
constexpr std::uint64_t segment_bytes = 64 * MiB;
constexpr std::uint64_t segments = 8;
constexpr int queues = 3;

/// Appends `bytes` in messages of 1 KB, one by one. Returns MB/s.
double append_bytes(Queue& queue, NumberedMessages& messages, std::uint64_t bytes) {
  const std::uint64_t begin = now_ns();
  for (std::uint64_t i = 0; i < bytes / message_bytes; ++i) {
    const Result<Offset> appended = queue.enqueue(messages.at(i));
    if (!appended) throw std::runtime_error(appended.error().text());
    if (i % 65536 == 0) throw_if_stopped();
  }
  return static_cast<double>(bytes) * 1e3 / static_cast<double>(now_ns() - begin);
}

}  // namespace

void measure_growth(LogSuite& suite) {
  const std::uint64_t window = suite.options().amount(GiB);
  std::vector<double> early;
  std::vector<double> late;
  for (int i = 0; i < (suite.options().quick ? 1 : queues); ++i) {
    const Scratch scratch;
    Queue queue =
        Queue::open(scratch.path("queue"), recycling_options(segment_bytes, segments)).value_or_throw();
    NumberedMessages messages(message_bytes);
    append_bytes(queue, messages, window);
    early.push_back(append_bytes(queue, messages, window));
    append_bytes(queue, messages, 17 * window);
    late.push_back(append_bytes(queue, messages, window));
  }
  suite.add(compare("growth_20", "append of 1 KB after 20 GB, capacity 512 MiB", "MB/s", Better::more, late,
                    "the same after 1 GB", early),
            0.9);
}

}  // namespace lightq::bench
