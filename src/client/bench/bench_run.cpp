/// Runs one row of a benchmark: producers and consumers in threads of this process. Layer: cli.
#include "client/bench/bench_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <lightq/consumer.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>

#include "client/terminal.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

using BenchClock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto bench_quiet_max = 5s;
constexpr auto bench_look = 200ms;

/// The beginning of each message.
struct BenchStamp {
  std::uint32_t run;  ///< distinguishes a producer of this run from others in the topic
  std::uint32_t number;
  std::int64_t sent_ns;
};

std::int64_t bench_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(BenchClock::now().time_since_epoch()).count();
}

/// Returns a number that is unlikely to repeat in other runs, nor are the next few.
std::uint32_t bench_run_number() {
  const auto now = static_cast<std::uint64_t>(bench_now_ns());
  return static_cast<std::uint32_t>(now ^ now >> 32 ^ static_cast<std::uint64_t>(getpid()) << 16);
}

/// The state that all threads of a run share.
struct BenchShared {
  std::uint32_t run = bench_run_number();  ///< producer number i marks its messages with run + i
  std::uint32_t producers = 1;
  bool is_in_order = false;  ///< each consumer receives all messages of a producer, in their order
  std::uint64_t expected = 0;
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::int64_t> last_ns{bench_now_ns()};  ///< when a message has arrived
  std::atomic<bool> stop{false};                      ///< the rest is not needed any more

  [[nodiscard]] bool is_over() const {
    return stop || interrupted() || received >= expected ||
           bench_now_ns() - last_ns > std::chrono::nanoseconds(bench_quiet_max).count();
  }
};

/// One producer, over one of the transports.
class BenchProducer {
 public:
  BenchProducer() = default;
  BenchProducer(const BenchProducer&) = delete;
  BenchProducer& operator=(const BenchProducer&) = delete;
  virtual ~BenchProducer() = default;
  /// Errors: timeout; the error that ended the producer.
  virtual Result<void> send(std::string_view payload) = 0;
  /// Sends the rest, and waits for confirms.
  virtual Result<void> close(bool unwanted) = 0;
};

class PlainBenchProducer final : public BenchProducer {
 public:
  explicit PlainBenchProducer(PlainProducer producer) : producer_(std::move(producer)) {}
  Result<void> send(std::string_view payload) override { return producer_.send(payload, bench_look); }
  Result<void> close(bool unwanted) override { return producer_.close(unwanted ? 0s : 10s); }

 private:
  PlainProducer producer_;
};

class SessionBenchProducer final : public BenchProducer {
 public:
  explicit SessionBenchProducer(Producer producer) : producer_(std::move(producer)) {}
  Result<void> send(std::string_view payload) override {
    const auto sent = producer_.send(payload);
    return sent ? Result<void>() : sent.error();
  }
  Result<void> close(bool unwanted) override {
    const Result<void> flushed = unwanted ? Result<void>() : producer_.flush(10s);
    (void)producer_.close(0s);
    return flushed;
  }

 private:
  Producer producer_;
};

/// One consumer, over one of the transports. Counts into its own BenchSeen, so that threads share little.
class BenchConsumer {
 public:
  explicit BenchConsumer(BenchShared& shared) : shared_(shared), next_(shared.producers, 0) {}
  BenchConsumer(const BenchConsumer&) = delete;
  BenchConsumer& operator=(const BenchConsumer&) = delete;
  virtual ~BenchConsumer() = default;

  void run() {
    while (!shared_.is_over()) {
      if (Result<void> received = receive(); !received) {
        seen_.result = received.error();
        shared_.stop = true;
      }
    }
    leave();
  }
  [[nodiscard]] const BenchSeen& seen() const { return seen_; }
  [[nodiscard]] std::int64_t first_ns() const { return first_ns_; }
  [[nodiscard]] std::int64_t last_ns() const { return last_ns_; }

 protected:
  void take(ByteView payload) {
    BenchStamp stamp;
    if (payload.size() < sizeof stamp) return;  // not from this run
    std::memcpy(&stamp, payload.data(), sizeof stamp);
    const std::uint32_t producer = stamp.run - shared_.run;
    if (producer >= shared_.producers) return;
    last_ns_ = bench_now_ns();
    if (seen_.received++ == 0) first_ns_ = last_ns_;
    std::uint32_t& next = next_[producer];
    if (shared_.is_in_order ? stamp.number != next : stamp.number < next) ++seen_.out_of_order;
    next = stamp.number + 1;
    seen_.latencies.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, last_ns_ - stamp.sent_ns)));
    ++shared_.received;
    shared_.last_ns.store(last_ns_, std::memory_order_relaxed);
  }

 private:
  virtual Result<void> receive() = 0;
  virtual void leave() = 0;

  BenchShared& shared_;
  std::vector<std::uint32_t> next_;  // of each producer
  BenchSeen seen_;
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

class PlainBenchConsumer final : public BenchConsumer {
 public:
  PlainBenchConsumer(BenchShared& shared, PlainConsumer consumer)
      : BenchConsumer(shared), consumer_(std::move(consumer)) {}

 private:
  Result<void> receive() override {
    const Result<std::optional<Message>> message = consumer_.receive(bench_look);
    if (!message) return message.error();
    if (*message) take((*message)->payload());
    return {};
  }
  void leave() override { (void)consumer_.leave(); }

  PlainConsumer consumer_;
};

class SessionBenchConsumer final : public BenchConsumer {
 public:
  SessionBenchConsumer(BenchShared& shared, Consumer consumer)
      : BenchConsumer(shared), consumer_(std::move(consumer)) {}

 private:
  Result<void> receive() override {
    Result<std::optional<DeliveredBatch>> batch = consumer_.receive_batch(bench_look);
    if (!batch) return batch.error();
    if (!*batch) return {};
    const OffsetRange range = (*batch)->range();
    while (!(*batch)->empty()) take((*batch)->take().payload);
    consumer_.acknowledge(range);
    return {};
  }
  void leave() override { (void)consumer_.close(1s); }

  Consumer consumer_;
};

/// Sends one message. Stops waiting when the message is no longer needed.
Result<void> send_one(BenchProducer& producer, std::string_view payload, const BenchShared& shared) {
  const auto deadline = BenchClock::now() + 10s;
  while (true) {
    Result<void> sent = producer.send(payload);
    if (sent || sent.error().code != ErrorCode::timeout || BenchClock::now() > deadline) return sent;
    if (shared.stop || interrupted()) return {};
  }
}

/// Sends a producer's messages, evenly spaced if a rate is given.
Result<void> produce_all(BenchProducer& producer, std::uint32_t number_of_producer, const BenchRow& row,
                         std::uint64_t count, const BenchShared& shared) {
  std::string payload(std::max<std::uint64_t>(row.size_bytes, sizeof(BenchStamp)), '.');
  const double own_rate = static_cast<double>(row.rate) / static_cast<double>(row.producers);
  const auto started = BenchClock::now();
  for (std::uint64_t number = 0; number < count && !shared.stop && !interrupted(); ++number) {
    if (row.rate > 0) {
      const std::chrono::duration<double> due(static_cast<double>(number) / own_rate);
      const auto at = started + std::chrono::duration_cast<BenchClock::duration>(due);
      if (at > BenchClock::now() && !pause_for(at - BenchClock::now())) break;
    }
    const BenchStamp stamp{shared.run + number_of_producer, static_cast<std::uint32_t>(number),
                           bench_now_ns()};
    std::memcpy(payload.data(), &stamp, sizeof stamp);
    if (Result<void> sent = send_one(producer, payload, shared); !sent) return sent;
  }
  const bool unwanted = shared.stop || interrupted();
  const Result<void> closed = producer.close(unwanted);
  return unwanted ? Result<void>() : closed;
}

Result<std::unique_ptr<BenchProducer>> open_producer(Client& client, const std::string& topic,
                                                     const BenchRow& row) {
  if (row.transport == BenchTransport::plain) {
    Result<PlainProducer> producer = client.plain_producer(topic);
    if (!producer) return producer.error();
    return std::unique_ptr<BenchProducer>(std::make_unique<PlainBenchProducer>(std::move(*producer)));
  }
  ProducerOptions options{.level = row.confirm, .send_timeout = bench_look, .name = "lightq bench"};
  if (row.transport == BenchTransport::zmq) options.connection = ConnectionType::zmq;
  // One that is paced sends each message at once.
  if (row.rate > 0) options.linger = Timeout(1);
  options.memory_bytes_max = std::max<std::uint64_t>(options.memory_bytes_max, row.size_bytes + limits::MiB);
  Result<Producer> producer = client.producer(topic, std::move(options));
  if (!producer) return producer.error();
  if (auto opened = producer->wait_open(10s); !opened) return opened.error();
  return std::unique_ptr<BenchProducer>(std::make_unique<SessionBenchProducer>(std::move(*producer)));
}

Result<std::unique_ptr<BenchConsumer>> open_consumer(Client& client, const std::string& topic, Mode mode,
                                                     const BenchRow& row, BenchShared& shared) {
  if (row.transport == BenchTransport::plain) {
    Result<PlainConsumer> consumer = client.plain_consumer(topic, {.mode = mode});
    if (!consumer) return consumer.error();
    return std::unique_ptr<BenchConsumer>(std::make_unique<PlainBenchConsumer>(shared, std::move(*consumer)));
  }
  ConsumerOptions options{.name = "lightq bench"};
  if (mode == Mode::sub) {
    options.mode = ConsumeMode::own;
    options.from = From::next();
  }
  if (row.transport == BenchTransport::zmq) options.connection = ConnectionType::zmq;
  Result<Consumer> consumer = client.consumer(topic, std::move(options));
  if (!consumer) return consumer.error();
  if (auto opened = consumer->wait_open(10s); !opened) return opened.error();
  return std::unique_ptr<BenchConsumer>(std::make_unique<SessionBenchConsumer>(shared, std::move(*consumer)));
}

void show_bench_progress(bool quiet, const BenchShared& shared) {
  Progress progress(quiet);
  while (!shared.is_over()) {
    if (progress.due())
      progress.show(format_count(shared.received) + " of " + format_messages(shared.expected));
    (void)pause_for(10ms);
  }
}

/// Adds the counts of the consumers.
void sum_up(const std::vector<std::unique_ptr<BenchConsumer>>& consumers, BenchSeen& all) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (const auto& consumer : consumers) {
    const BenchSeen& seen = consumer->seen();
    if (!seen.result && all.result) all.result = seen.result;
    if (seen.received == 0) continue;
    first = all.received == 0 ? consumer->first_ns() : std::min(first, consumer->first_ns());
    last = std::max(last, consumer->last_ns());
    all.received += seen.received;
    all.out_of_order += seen.out_of_order;
    all.latencies.add(seen.latencies);
  }
  all.seconds = static_cast<double>(last - first) / 1e9;
}

}  // namespace

BenchSeen run_bench_row(const Common& common, Client& client, const std::string& topic, Mode mode,
                        const BenchRow& row, std::uint64_t count) {
  BenchSeen all;
  BenchShared shared;
  shared.producers = static_cast<std::uint32_t>(row.producers);
  shared.is_in_order = mode == Mode::sub || row.consumers == 1;
  shared.expected = all.expected = count * (mode == Mode::sub ? row.consumers : 1);
  std::vector<std::unique_ptr<BenchConsumer>> consumers;
  for (std::uint64_t i = 0; i < row.consumers; ++i) {
    auto consumer = open_consumer(client, topic, mode, row, shared);
    if (!consumer) {
      all.result = consumer.error();
      return all;
    }
    consumers.push_back(std::move(*consumer));
  }
  std::vector<std::unique_ptr<BenchProducer>> producers;
  for (std::uint64_t i = 0; i < row.producers; ++i) {
    auto producer = open_producer(client, topic, row);
    if (!producer) {
      all.result = producer.error();
      return all;
    }
    producers.push_back(std::move(*producer));
  }
  all.is_started = true;
  shared.last_ns = bench_now_ns();
  std::vector<Result<void>> sent(producers.size());
  {
    std::vector<std::jthread> threads;
    for (const auto& consumer : consumers) threads.emplace_back([one = consumer.get()] { one->run(); });
    for (std::size_t i = 0; i < producers.size(); ++i) {
      const std::uint64_t own = count / row.producers + (i < count % row.producers ? 1 : 0);
      threads.emplace_back([&, i, own] {
        sent[i] = produce_all(*producers[i], static_cast<std::uint32_t>(i), row, own, shared);
        if (!sent[i]) shared.stop = true;
      });
    }
    show_bench_progress(common.quiet, shared);
    shared.stop = true;
  }
  sum_up(consumers, all);
  for (const Result<void>& each : sent)
    if (!each && all.result) all.result = each;
  return all;
}

}  // namespace lightq::cli
