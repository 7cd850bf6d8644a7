/// A topic on a disk that fails when a test asks for it, and the topic's event loop.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plain/endpoint_set.hpp"
#include "support/batches.hpp"
#include "support/faulty_storage.hpp"
#include "topic/reactor/topic_opener.hpp"
#include "topic/runtime/member_acks.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

using test::FaultyStorage;

class CountingSink final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) override {
    errors += level == LogLevel::error ? 1 : 0;
    lines.emplace_back(line);
  }
  int errors = 0;
  std::vector<std::string> lines;
};

class FakeProducer final : public SessionProducer {
 public:
  explicit FakeProducer(bool durable) : durable_(durable) {}
  [[nodiscard]] std::uint64_t producer_id() const override { return identity.id; }
  [[nodiscard]] bool needs_durable() const override { return durable_; }
  void admitted() override { is_admitted = true; }
  bool resume() override { return true; }
  bool durable_moved() override { return false; }
  void end(ClientError code, const std::string&) override { ended = code; }

  ProducerIdentity identity;
  bool is_admitted = false;
  std::optional<ClientError> ended;

 private:
  const bool durable_;
};

class TopicRuntimeTest : public testing::Test, public TopicRuntime::Ticker {
 protected:
  explicit TopicRuntimeTest(
      const protocol::TopicSettings& settings = {.broker_type = protocol::BrokerType::file},
      std::int64_t flush_interval_ms = StorageSettings{}.flush_interval_ms)
      : settings_of_topic_(settings), flush_interval_ms_(flush_interval_ms) {
    context_.steady_now = [this] { return EventLoop::Clock::time_point(steady_); };
    start();
    storage.on_call = [this](FaultyStorage::Call call, const std::string& path) {
      const std::lock_guard lock(mutex_);
      return FaultyStorage::Fault{fails_ && fails_(call, path) ? error_ : 0};
    };
  }
  ~TopicRuntimeTest() override {
    if (topic == nullptr) return;
    run_until([this] { return topic->idle_on_disk(); });
    topic.reset();  // before its event loop
  }
  /// Ends the faults of the disk before the members of a derived class are gone, which its thread may read.
  void TearDown() override { fail(0, {}); }
  void start() { try_start().value_or_throw(); }
  Result<void> try_start() {
    TopicDefinition definition{{1}, *TopicName::parse("orders"), settings_of_topic_};
    const StorageSettings settings{.topics_directory = "/topics", .flush_interval_ms = flush_interval_ms_};
    opener_.emplace(storage, *pool);
    auto opened = opener_->open(definition, settings, now_(), sink);
    if (!opened) return opened.error();
    if (on_open) on_open(*opened);
    auto store = opened->take_store(disk_, loop_);
    if (change_store) store = change_store(std::move(store));
    topic = std::make_unique<TopicRuntime>(context_, *this, make_endpoint_set, definition, std::move(store),
                                           std::move(opened).value_or_throw());
    return {};
  }
  /// Drops the topic without a clean stop. Only calls that on_call permits reach the disk.
  void drop() {
    if (topic != nullptr) {
      topic->begin_stop(ClientError::shutting_down);
      EXPECT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
    }
    topic.reset();
    ticking_ = false;
    pool.emplace(log::SegmentPoolOptions{"/pool"}, storage);
  }
  /// Stops the topic, cleanly or not, and starts it again.
  void restart(bool cleanly) {
    topic->begin_stop(ClientError::shutting_down);
    ASSERT_TRUE(run_until([this] { return topic->idle_on_disk(); }));
    if (cleanly) topic->flush_for_stop();
    topic.reset();
    ticking_ = false;
    start();
  }
  void tick_wanted(TopicRuntime&) override { ticking_ = true; }
  [[nodiscard]] EventLoop& loop() { return loop_; }
  [[nodiscard]] ReactorContext& context() { return context_; }
  [[nodiscard]] DiskThread& disk() { return disk_; }

  /// Sets the wall clock.
  void step_clock(std::chrono::microseconds by) { time_us_ += by.count(); }
  /// Lets time pass for the topic, by both of its clocks.
  void pass_time(std::chrono::microseconds time) {
    step_clock(time);
    steady_ += time;
  }
  [[nodiscard]] Timestamp wall_time() const { return now_(); }
  /// Lets those calls of the disk fail. Its thread calls `which`: a test that gives it its own variables ends
  /// the faults with fail(0, {}) while they exist.
  void fail(int error, std::function<bool(FaultyStorage::Call, const std::string&)> which) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    fails_ = std::move(which);
  }
  /// Sets the number of the topic's own user from now on.
  void set_own_user(std::uint64_t user) { context_.access.set_owner({1}, user); }
  void set_message_bytes_max(std::uint64_t bytes) { settings_.message_bytes_max = bytes; }
  void put_user(std::uint64_t id) {
    UserAccess user;
    user.id = id;
    context_.access.put_user(std::move(user));
  }
  void remove_user(std::uint64_t id) { context_.access.remove_user(id); }
  void open(FakeProducer& producer, ProducerIdentity wanted = {}, std::uint64_t user = 0) {
    const auto opened = topic->publishing().open(wanted, producer, {.user = user});
    ASSERT_EQ(opened.refusal, ClientError::none);
    producer.identity = opened.producer.identity;
  }
  void send(const FakeProducer& producer, std::uint64_t sequence) {
    auto bytes =
        test::make_batch_of_producer(producer.identity.id, producer.identity.epoch, sequence, {"message"});
    ASSERT_EQ(topic->publishing().store({bytes, 1, 7}, {producer.identity, sequence, 1}),
              PublishOutcome::accepted);
    topic->publishing().want_flush();
    topic->dispatch().published();
  }
  /// Returns the paths of the topic's segment files in their order.
  std::vector<std::string> segments() {
    auto paths = storage.paths();
    std::erase_if(
        paths, [](const auto& path) { return !path.starts_with("/topics/1/") || !path.ends_with(".seg"); });
    return paths;
  }
  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = EventLoop::Clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (EventLoop::Clock::now() >= deadline) return false;
      turn(std::chrono::milliseconds(1));
    }
    return true;
  }
  /// Runs the loop for `time`, and for at least one turn. A tenth of a second passes for the topic.
  void turn(std::chrono::microseconds time) {
    std::stop_source stop;
    loop_.at(EventLoop::Clock::now() + time, [&] { stop.request_stop(); });
    loop_.run(stop.get_token());
    pass_time(std::chrono::milliseconds(100));
    if (std::exchange(ticking_, false)) ticking_ = topic->tick();
  }

  FaultyStorage storage;
  std::optional<log::SegmentPool> pool{std::in_place, log::SegmentPoolOptions{"/pool"}, storage};
  CountingSink sink;
  std::function<void(FoundTopic&)> on_open;  ///< called with the state that a start has found
  /// Called at a start; returns the store to use in place of the one that was opened.
  std::function<std::unique_ptr<TopicStore>(std::unique_ptr<TopicStore>)> change_store;
  std::unique_ptr<TopicRuntime> topic;

 private:
  const protocol::TopicSettings settings_of_topic_;
  const std::int64_t flush_interval_ms_;
  std::mutex mutex_;
  std::function<bool(FaultyStorage::Call, const std::string&)> fails_;  // guarded by mutex_
  int error_ = 0;                                                       // guarded by mutex_
  std::int64_t time_us_ = 1'000'000'000'000;
  std::chrono::microseconds steady_ = std::chrono::hours(1000);
  const WallClock now_ = [this] { return Timestamp{time_us_}; };
  bool ticking_ = false;
  EventLoop loop_;
  DiskThread disk_;
  PortBook ports_{"127.0.0.1", std::nullopt, std::chrono::hours(1)};
  EndpointSettings settings_;
  std::atomic<std::uint64_t> next_id_ = 1;
  const TicketKey tickets_{TicketKey::random_bytes()};
  std::optional<TopicOpener> opener_;  // of the present start
  ReactorContext context_{loop_, disk_, ports_, sink, tickets_, settings_, now_, next_id_, {}, {}, {}};
};

}  // namespace lightq::broker
