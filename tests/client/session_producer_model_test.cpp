/// Tests of a session producer against a model of a broker that follows docs/session.md with all the faults
/// that it allows. Every message is stored exactly once and in order, or reported as refused or unknown.
#include <gtest/gtest.h>

#include <atomic>
#include <charconv>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include <lightq/producer.hpp>

#include "session_fixture.hpp"
#include "session_model_broker.hpp"

namespace lightq::test {
namespace {

std::uint64_t number_of(const std::string& payload) {
  std::uint64_t number = 0;
  std::from_chars(payload.data(), payload.data() + payload.size(), number);
  return number;
}

/// One producer, one broker, and the reports of the producer.
class ModelRun {
 public:
  ModelRun(Random& random, ConfirmLevel level, bool forgets)
      : random_(random), broker_(random, level), forgets_(forgets), producer_(make()) {
    broker_.chances = {.cut = 60, .crash = 200, .forget = forgets ? 150U : 0U, .refuse = 10};
  }

  void run(std::uint64_t messages) {
    for (int step = 0; step < 200'000; ++step) {
      if (sent_ < messages) {
        send();
      } else {
        // Without faults at the end, every message is settled.
        broker_.chances = {};
        (void)producer_.flush(Timeout(0));
      }
      if (producer_.state() == SessionState::in_doubt) {
        ++doubts_;
        producer_.resolve(false);
      }
      if (random_.one_in(3)) (void)producer_.poll(Timeout(0));
      broker_.step();
      if (random_.one_in(5)) clock_.advance(Timeout(static_cast<int>(random_.below(30))));
      if (sent_ == messages && producer_.unconfirmed() == 0) return;
    }
    ADD_FAILURE() << producer_.unconfirmed() << " of " << sent_ << " messages were never settled; state "
                  << static_cast<int>(producer_.state()) << ": " << producer_.last_error().text();
  }

  void check() {
    std::optional<std::uint64_t> last;
    for (const std::string& payload : broker_.stored()) {
      const std::uint64_t number = number_of(payload);
      ASSERT_EQ(payload, payloads_.at(number)) << "other bytes than were sent";
      ASSERT_TRUE(!last || *last < number) << number << " is stored behind " << *last;
      last = number;
      ASSERT_TRUE(fates_.contains(number));
      EXPECT_NE(fates_.at(number), Fate::refused) << number << " is stored though it was told to be refused";
      stored_.insert(number);
    }
    ASSERT_EQ(fates_.size(), sent_);
    for (const auto& [number, fate] : fates_) {
      if (fate == Fate::confirmed) {
        ASSERT_TRUE(stored_.contains(number)) << number << " is confirmed and not stored";
      }
      if (fate == Fate::unknown) {
        ASSERT_TRUE(doubts_ > 0) << number << " is told to be unknown without a reason";
      }
    }
    EXPECT_EQ(producer_.stats().violations, 0U);
    EXPECT_EQ(producer_.stats().lost, 0U);
    if (!forgets_) {
      EXPECT_EQ(doubts_, 0U);
    }
  }

  [[nodiscard]] std::uint64_t cuts() const { return broker_.cuts(); }
  [[nodiscard]] std::uint64_t late() const { return broker_.late(); }
  [[nodiscard]] std::uint64_t doubts() const { return doubts_; }
  [[nodiscard]] std::uint64_t refused() const { return producer_.stats().refused; }

 private:
  Producer make() {
    ProducerOptions options;
    options.clock = clock_.source();
    options.share_memory = false;
    options.heartbeat = Timeout(0);
    options.batch_bytes = random_.between(4096, 20'000);
    options.window_bytes = random_.between(1, 60'000);
    options.memory_bytes_max = random_.between(100'000, 400'000);
    options.eager_batches = random_.below(6);
    options.linger = Timeout(static_cast<int>(random_.below(3) * 10));
    options.send_timeout = Timeout(0);
    auto made = Producer::open(
        "orders", [this]() -> Result<SessionAddress> { return SessionAddress{broker_.uri(), ""}; }, options);
    Producer producer = std::move(made).value_or_throw();
    producer.on_report([this](const SendReport& report) {
      for (std::uint64_t number = report.begin; number < report.end; ++number)
        EXPECT_TRUE(fates_.emplace(number, report.fate).second) << number << " was told twice";
    });
    return producer;
  }

  void send() {
    std::string payload = std::to_string(sent_) + ":";
    if (random_.one_in(60)) payload += ModelBroker::too_large_mark;
    payload += std::string(random_.one_in(100) ? random_.below(90'000) : random_.below(600), 'x');
    const Result<std::uint64_t> number = producer_.send(payload);
    if (!number.ok()) return;
    EXPECT_EQ(*number, sent_);
    payloads_.push_back(std::move(payload));
    ++sent_;
  }

  Random& random_;
  MovableClock clock_;
  ModelBroker broker_;
  bool forgets_;
  std::map<std::uint64_t, Fate> fates_;
  std::set<std::uint64_t> stored_;
  std::vector<std::string> payloads_;
  std::uint64_t sent_ = 0;
  std::uint64_t doubts_ = 0;
  Producer producer_;
};

class SessionProducerModel : public ::testing::TestWithParam<std::tuple<ConfirmLevel, bool>> {};

TEST_P(SessionProducerModel, StoresEverythingOnceAndInOrder) {
  const auto& [level, forgets] = GetParam();
  std::uint64_t cuts = 0;
  std::uint64_t late = 0;
  std::uint64_t doubts = 0;
  std::uint64_t refused = 0;
  for (int series = 0; series < 60; ++series) {
    Random random(series);
    ModelRun run(random, level, forgets);
    run.run(400);
    run.check();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
    cuts += run.cuts();
    late += run.late();
    doubts += run.doubts();
    refused += run.refused();
  }
  // Otherwise the faults were too rare for this test.
  EXPECT_GT(cuts, 100U);
  EXPECT_GT(late, 0U);
  EXPECT_GT(refused, 10U);
  EXPECT_EQ(doubts > 10, forgets);
}

INSTANTIATE_TEST_SUITE_P(Levels, SessionProducerModel,
                         ::testing::Combine(::testing::Values(ConfirmLevel::received, ConfirmLevel::flushed),
                                            ::testing::Bool()));

/// A broker on its own thread that confirms everything, for calls that wait.
class SessionProducerOnTcp : public SessionProducerTest {
 protected:
  SessionProducerOnTcp() : SessionProducerTest(FakeSessionListener::Kind::tcp) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~SessionProducerOnTcp() override { thread_ = {}; }

  std::atomic<std::uint64_t> stored = 0;

 private:
  void serve(const std::stop_token& stop) {
    FakeSession session;
    while (!stop.stop_requested()) {
      if (!session.is_open()) session = listener.accept();
      session.read();
      const std::uint64_t before = stored;
      while (const auto frame = session.next()) {
        const std::uint32_t request = frame->header.request;
        if (frame->header.op == session::Op::hello) session.put(welcome, 0, request);
        if (frame->header.op == session::Op::produce_open) session.put(opened, channel, request);
        if (frame->header.op == session::Op::produce) stored += TakenBatch::of(*frame).payloads.size();
        if (frame->header.op == session::Op::goodbye) session.close();
      }
      if (stored != before) session.put(session::Confirm{stored, 0, stored}, channel, 0);
      session.write();
      std::this_thread::yield();
    }
  }
  std::jthread thread_;
};

TEST_F(SessionProducerOnTcp, WaitsForTheTopicForMemoryAndForConfirms) {
  options.batch_bytes = 8192;
  options.memory_bytes_max = 65536;
  options.window_bytes = 16384;
  Producer producer = make();
  ASSERT_TRUE(producer.wait_open(Timeout(20'000)).ok()) << producer.last_error().text();
  constexpr std::uint64_t messages = 20'000;
  for (std::uint64_t number = 0; number < messages; ++number) {
    const auto sent = producer.send("a message of some bytes, number " + std::to_string(number));
    ASSERT_TRUE(sent.ok()) << sent.error().text();
  }
  ASSERT_TRUE(producer.wait_settled(messages / 2, Timeout(20'000)).ok());
  EXPECT_GT(producer.confirmed(), messages / 2);
  const Result<void> flushed = producer.flush(Timeout(20'000));
  ASSERT_TRUE(flushed.ok()) << flushed.error().text();
  EXPECT_EQ(stored, messages);
  EXPECT_EQ(producer.confirmed(), messages);
  ASSERT_TRUE(producer.send("one more").ok());
  EXPECT_TRUE(producer.close(Timeout(20'000)).ok());
  EXPECT_EQ(stored, messages + 1);
}

}  // namespace
}  // namespace lightq::test
