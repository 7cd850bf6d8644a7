/// Tests of session consumers against a model of a group with every possible fault. No message is settled
/// before an application acknowledged it, all messages are settled in the end, and no consumer exceeds its
/// credit.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <lightq/consumer.hpp>

#include "session_model_group.hpp"

namespace lightq::test {
namespace {

/// An application with a consumer.
class Member {
 public:
  Member(Random& random, ModelGroup& group, std::set<std::uint64_t>& acknowledged, MovableClock& clock)
      : random_(random), group_(group), acknowledged_(acknowledged) {
    options_.clock = clock.source();
    options_.share_memory = false;
    options_.heartbeat = Timeout(0);
    options_.prefetch_messages = static_cast<std::uint32_t>(random.between(1, 20));
    options_.prefetch_bytes = random.between(1, 400);
    open();
  }

  /// Takes a random action with the messages that it has received. With `finish` it acknowledges all of them.
  void step(bool finish) {
    receive();
    if (finish) return acknowledge(held_.size());
    switch (random_.below(12)) {
      case 0: return acknowledge(random_.below(held_.size() + 1));
      case 1: return acknowledge_one();
      case 2: return acknowledge_before();
      case 3: return reject();
      case 4:
        if (!held_.empty()) consumer_->extend(held_.front(), Timeout(5));
        return;
      case 5: (void)consumer_->poll(); return;
      case 6: (void)consumer_->flush(Timeout(0)); return;
      case 7:
        consumer_->pause();
        consumer_->resume();
        return;
      case 8:
        if (random_.one_in(30)) open();
        return;
      default: return;
    }
  }
  [[nodiscard]] const Consumer& consumer() const { return *consumer_; }

 private:
  void open() {
    if (consumer_) (void)consumer_->close(Timeout(0));
    held_.clear();
    consumer_.emplace(
        Consumer::open(
            "orders", [uri = group_.uri()] { return Result(SessionAddress{uri, "a.b"}); }, options_)
            .value_or_throw());
  }
  void take(const Delivered& message) {
    const std::uint64_t offset = message.offset.value;
    ASSERT_LT(offset, group_.messages().size());
    ASSERT_EQ(message.text(), group_.messages()[offset]);
    ASSERT_GE(message.delivery, 1U);
    ASSERT_LE(message.delivery, group_.handed(offset));
    held_.push_back(message.offset);
  }
  void receive() {
    if (random_.one_in(2)) {
      const auto message = consumer_->receive(Timeout(0));
      ASSERT_TRUE(message.ok()) << message.error().message;
      if (*message) take(**message);
      return;
    }
    const auto batch = consumer_->receive_batch(Timeout(0));
    ASSERT_TRUE(batch.ok()) << batch.error().message;
    if (!*batch) return;
    for (const Delivered& message : **batch) take(message);
  }
  void acknowledge(std::size_t count) {
    for (; count > 0; --count) {
      note({held_.front(), held_.front() + 1});
      consumer_->acknowledge(held_.front());
      held_.pop_front();
    }
  }
  void acknowledge_one() {
    if (held_.empty()) return;
    const auto at = held_.begin() + static_cast<std::ptrdiff_t>(random_.below(held_.size()));
    note({*at, *at + 1});
    consumer_->acknowledge(*at);
    held_.erase(at);
  }
  void acknowledge_before() {
    if (held_.empty()) return;
    const Offset end = held_.back();
    for (const Offset offset : held_)
      if (offset < end) note({offset, offset + 1});
    consumer_->acknowledge_before(end);
  }
  void reject() {
    if (held_.empty()) return;
    consumer_->reject(held_.back(), Timeout(static_cast<Timeout::rep>(random_.below(3))));
    held_.pop_back();
  }
  void note(OffsetRange range) {
    for (std::uint64_t offset = range.begin.value; offset < range.end.value; ++offset)
      acknowledged_.insert(offset);
  }

  Random& random_;
  ModelGroup& group_;
  std::set<std::uint64_t>& acknowledged_;
  ConsumerOptions options_;
  std::deque<Offset> held_;
  std::optional<Consumer> consumer_;
};

class SessionConsumerModel : public ::testing::TestWithParam<int> {};

TEST_P(SessionConsumerModel, NoMessageIsLostAndAllAreAcknowledged) {
  Random random(GetParam());
  std::vector<std::string> messages;
  for (int i = 0; i < 400; ++i)
    messages.push_back(std::to_string(i) + std::string(random.below(random.one_in(10) ? 600 : 30), '.'));
  ModelGroup group(random, messages);
  group.chances.cut = GetParam() % 3 == 0 ? 0 : 400;
  group.chances.time_out = GetParam() % 2 == 0 ? 0 : 60;
  MovableClock clock;
  std::set<std::uint64_t> acknowledged;
  std::deque<Member> members;
  for (std::uint64_t count = random.between(1, 3); count > 0; --count)
    members.emplace_back(random, group, acknowledged, clock);
  for (int step = 0; group.done_count() < messages.size(); ++step) {
    const bool finish = step > 4000;
    if (finish) group.chances = {};
    ASSERT_LT(step, 40'000) << group.done_count() << " are done";
    group.step();
    for (Member& member : members) member.step(finish);
    if (random.one_in(3)) clock.advance(Timeout(static_cast<Timeout::rep>(random.below(60))));
    if (::testing::Test::HasFatalFailure()) return;
    if (step % 100 != 0) continue;
    for (std::uint64_t offset = 0; offset < messages.size(); ++offset)
      ASSERT_TRUE(!group.is_done(offset) || acknowledged.contains(offset)) << offset;
  }
  for (const Member& member : members) {
    EXPECT_EQ(member.consumer().stats().violations, 0U) << member.consumer().last_error().message;
    EXPECT_EQ(member.consumer().stats().lost, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionConsumerModel, testing::Range(0, 12));

}  // namespace
}  // namespace lightq::test
