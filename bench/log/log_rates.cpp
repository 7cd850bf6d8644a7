/// Suite `log`: rates with stated expectations. Layer: bench.
#include "log/log_suite.hpp"

namespace lightq::bench {
namespace {

constexpr std::size_t message_bytes = 100;
constexpr std::uint64_t segment_bytes = 64 * MiB;
constexpr std::uint64_t segments = 4;
constexpr auto patience = std::chrono::seconds(60);

/// Appends `count` messages packed into batches of 64 KB. Includes the packing.
void append_packed(Queue& queue, BatchBuilder& batch, ByteView message, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    batch.add(message);
    if (batch.size_bytes() + record_bytes(message.size()) <= limits::batch_bytes_target && i + 1 < count)
      continue;
    const Result<Offset> appended = queue.enqueue(batch);
    if (!appended) throw std::runtime_error(appended.error().text());
    batch.clear();
  }
}

void append_singly(Queue& queue, ByteView message, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Result<Offset> appended = queue.enqueue(message);
    if (!appended) throw std::runtime_error(appended.error().text());
  }
}

/// Returns the rate of `work` in million messages per second, one value for each round after the first.
std::vector<double> rates_of(const LogSuite& suite, std::uint64_t count, const std::function<void()>& work) {
  std::vector<double> rates;
  for (int round = 0; round <= suite.options().rounds(); ++round) {
    throw_if_stopped();
    const std::uint64_t begin = now_ns();
    work();
    if (round > 0) rates.push_back(static_cast<double>(count) * 1e3 / static_cast<double>(now_ns() - begin));
  }
  return rates;
}

void measure_unsynced(LogSuite& suite) {
  const Scratch scratch;
  QueueOptions options = recycling_options(segment_bytes, segments);
  Queue queue = Queue::open(scratch.path("queue"), options).value_or_throw();
  const std::vector<std::byte> message(message_bytes, std::byte{'m'});
  BatchBuilder batch;
  const std::uint64_t count = suite.options().amount(8'000'000);
  append_packed(queue, batch, message,
                2 * segments * segment_bytes / message_bytes);  // use every segment once
  suite.add_expected("append_packed_100", "append of 100 B, flush `none`, packed into batches",
                     "million msg/s", Better::more,
                     rates_of(suite, count, [&] { append_packed(queue, batch, message, count); }), 20);
  suite.add_expected("append_single_100", "append of 100 B, flush `none`, one by one", "million msg/s",
                     Better::more, rates_of(suite, count, [&] { append_singly(queue, message, count); }), 20);
}

/// Measures until the last message is durable.
void measure_durable(LogSuite& suite) {
  const Scratch scratch;
  QueueOptions options = recycling_options(segment_bytes, segments);
  options.flush = {.bytes = 4 * MiB, .interval = std::chrono::milliseconds(10)};
  Queue queue = Queue::open(scratch.path("queue"), options).value_or_throw();
  const std::vector<std::byte> message(message_bytes, std::byte{'m'});
  BatchBuilder batch;
  const std::uint64_t count = suite.options().amount(10'000'000);
  const auto append_durably = [&](std::uint64_t messages) {
    append_packed(queue, batch, message, messages);
    check(queue.wait_durable(queue.next_offset(), patience).value_or_throw(),
          "messages did not become durable");
  };
  append_durably(2 * segments * segment_bytes / message_bytes);
  const std::vector<double> rates = rates_of(suite, count, [&] { append_durably(count); });
  std::vector<double> gigabytes;
  for (const double rate : rates) gigabytes.push_back(rate * message_bytes / 1e3);
  suite.add_expected("durable_100", "durable by group commit, 100 B", "million msg/s", Better::more, rates,
                     8);
  suite.add_expected("durable_bytes_100", "durable by group commit, 100 B", "GB/s", Better::more, gigabytes,
                     0.9);
}

}  // namespace

void measure_rates(LogSuite& suite) {
  measure_unsynced(suite);
  measure_durable(suite);
}

}  // namespace lightq::bench
