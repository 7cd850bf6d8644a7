/// Tests of a group with a slow member, in simulated time: it takes no messages from quick ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/consumer.hpp>

#include "session_consumer_fixture.hpp"

namespace lightq::test {
namespace {

using namespace std::chrono_literals;

constexpr SessionTime slow_member_start{1h};

/// A broker with a backlog of empty messages, for members of one group. Gives each message to one member: to
/// those with credit in turn, at most 50 messages at a time.
class SharedBacklog {
 public:
  explicit SharedBacklog(std::uint64_t count) : count_(count) {}

  [[nodiscard]] const std::string& uri() const { return listener_.uri(); }
  /// Returns how many members have opened their channel.
  [[nodiscard]] std::size_t opened() const {
    return static_cast<std::size_t>(std::ranges::count_if(members_, &Member::is_open));
  }
  [[nodiscard]] bool is_empty() const { return next_ == count_; }
  /// Takes what members have sent. Then delivers everything for which there is credit, if `delivers`.
  void step(bool delivers) {
    if (FakeSession session = listener_.accept(); session.is_open())
      members_.emplace_back().session = std::move(session);
    for (Member& member : members_) {
      member.session.read();
      while (const auto frame = member.session.next()) take(member, *frame);
    }
    for (bool some = delivers; some;) {
      some = false;
      for (Member& member : members_) some = deliver(member) || some;
    }
    for (Member& member : members_) member.session.write();
  }

 private:
  struct Member {
    FakeSession session;
    bool is_open = false;
    std::uint64_t credit = 0;
  };
  static constexpr std::uint32_t channel = 5;

  void take(Member& member, const TakenFrame& frame) {
    using session::Op;
    if (frame.header.op == Op::hello) member.session.put(session::Welcome{}, 0, frame.header.request);
    if (frame.header.op == Op::credit) member.credit += frame.as<session::Credit>().messages;
    if (frame.header.op != Op::consume_open) return;
    member.credit = frame.as<session::ConsumeOpen>().credit_messages;
    member.is_open = true;
    member.session.put(session::ConsumeOpened{0, 0, count_, 1, 30'000}, channel, frame.header.request);
  }
  bool deliver(Member& member) {
    const std::uint64_t messages = std::min({member.credit, count_ - next_, std::uint64_t{50}});
    if (messages == 0) return false;
    member.session.put_bytes(deliver_frame(channel, Offset{next_}, std::vector<std::string>(messages)));
    member.credit -= messages;
    next_ += messages;
    return true;
  }

  FakeSessionListener listener_;
  std::deque<Member> members_;
  std::uint64_t count_;
  std::uint64_t next_ = 0;
};

/// Four members of a group that share a backlog of 5,000 messages. Three of them work for the parameter's
/// time on a message, one works 100 times as long. Their times are simulated: each has its own clock, and the
/// member that is behind goes on.
class SlowMemberTest : public ::testing::TestWithParam<std::chrono::microseconds> {
 protected:
  static constexpr std::uint64_t count = 5'000;
  static constexpr double ideal = count / 3.01;  // in units of the parameter

  struct Worker {
    std::chrono::microseconds work;
    std::shared_ptr<SessionTime> time = std::make_shared<SessionTime>(slow_member_start);
    std::optional<Consumer> consumer = std::nullopt;
    std::uint64_t done = 0;
    std::uint64_t done_late = 0;  // after the broker had delivered the last message
    bool is_over = false;         // it has no message, and the broker has none
  };

  /// Lets the members work until everything is done. Returns the time that this took, in units of the
  /// parameter.
  double run(const ConsumerOptions& options) {
    connect(options);
    SessionTime end = slow_member_start;
    for (std::uint64_t done = 0, steps = 0; done < count; ++steps) {
      EXPECT_LT(steps, 1'000'000U);
      if (::testing::Test::HasFailure()) break;
      Worker& worker = *std::ranges::min_element(
          workers, {}, [](const Worker& one) { return one.is_over ? session_never : *one.time; });
      if (!work(worker)) continue;
      end = std::max(end, *worker.time);
      ++done;
    }
    return std::chrono::duration<double>(end - slow_member_start) / GetParam();
  }

  std::array<Worker, 4> workers{{{GetParam()}, {100 * GetParam()}, {GetParam()}, {GetParam()}}};

 private:
  void connect(ConsumerOptions options) {
    options.share_memory = false;
    options.heartbeat = Timeout(0);
    for (Worker& worker : workers) {
      options.clock = [time = worker.time] { return *time; };
      worker.consumer.emplace(
          Consumer::open(
              "orders", [uri = backlog_.uri()] { return Result(SessionAddress{uri, "a.b"}); }, options)
              .value_or_throw());
    }
    for (int step = 0; step < 3000 && backlog_.opened() < workers.size(); ++step) {
      backlog_.step(false);
      for (Worker& worker : workers) (void)worker.consumer->poll();
    }
    ASSERT_EQ(backlog_.opened(), workers.size());
  }
  /// Lets a member work on its next message, or wait for a while if it has none.
  bool work(Worker& worker) {
    backlog_.step(true);
    const bool is_late = backlog_.is_empty();
    const auto message = worker.consumer->receive(Timeout(0));
    EXPECT_TRUE(message.ok()) << message.error().message;
    const bool has_one = message.ok() && message->has_value();
    worker.is_over = is_late && !has_one;
    *worker.time += has_one ? worker.work : GetParam();
    if (!has_one) return false;
    EXPECT_EQ(worker.consumer->acknowledge(**message), 1U);
    ++worker.done;
    if (is_late) ++worker.done_late;
    return true;
  }

  SharedBacklog backlog_{count};
};

TEST_P(SlowMemberTest, TakesNothingFromQuickOnes) {
  EXPECT_LE(run({}), 1.3 * ideal);
  const Worker& slow = workers[1];
  EXPECT_LE(slow.done_late, 4U);
  EXPECT_GE(slow.done, 16U) << "it works all the time";
  EXPECT_LE(slow.done, 20U);
  for (const Worker& worker : workers) {
    if (worker.work == GetParam()) {
      EXPECT_NEAR(static_cast<double>(worker.done), ideal, 200);
    }
  }
}

TEST_P(SlowMemberTest, TakesAQuarterWithFixedCredit) {
  EXPECT_GT(run({.prefetch_messages = 10'000}), 50 * ideal);
  EXPECT_EQ(workers[1].done, count / 4);
}

INSTANTIATE_TEST_SUITE_P(Work, SlowMemberTest, ::testing::Values(10us, 100us, 1ms, 10ms),
                         [](const auto& tested) { return std::to_string(tested.param.count()) + "us"; });

}  // namespace
}  // namespace lightq::test
