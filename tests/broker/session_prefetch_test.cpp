/// Tests of the credit that adapts to a consumer's work, against a broker in this process. The consumers have
/// clocks that the test sets, so that no time has to pass.
#include <lightq/client.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "broker/each_way.hpp"
#include "broker/embedded_broker.hpp"

namespace lightq::testing {
namespace {

using namespace std::chrono_literals;

class SessionPrefetchOverEach : public ::testing::TestWithParam<ConnectionType> {
 protected:
  using RealClock = std::chrono::steady_clock;
  static constexpr SessionTime start{1h};

  void produce(std::uint64_t count) {
    client.create_topic("work", {.broker_type = BrokerType::queue}).value_or_throw();
    auto producer = client.producer("work", {.connection = GetParam()}).value_or_throw();
    for (std::uint64_t i = 0; i < count; ++i) producer.send("message").value_or_throw();
    producer.close(20s).value_or_throw();
  }
  /// Returns a connected consumer with default credit whose clock shows `time`.
  Consumer member(std::shared_ptr<SessionTime> time) {
    ConsumerOptions options;
    options.connection = GetParam();
    options.heartbeat = 0ms;
    options.clock = [time = std::move(time)] { return *time; };
    Consumer consumer = client.consumer("work", std::move(options)).value_or_throw();
    while (!consumer.connected() && RealClock::now() < deadline) consumer.poll().value_or_throw();
    return consumer;
  }
  /// Returns how many messages the broker could deliver now.
  std::uint64_t ready() {
    const auto groups = client.stats("work").value_or_throw().groups;
    return groups.empty() ? 0 : groups.front().ready;
  }

  EmbeddedBroker broker;
  Client client = broker.client();
  RealClock::time_point deadline = RealClock::now() + 60s;
};

INSTANTIATE_TEST_SUITE_P(Connections, SessionPrefetchOverEach, each_connection(), connection_name);

TEST_P(SessionPrefetchOverEach, AConsumerThatOnlyCountsRequestsTheMost) {
  constexpr std::uint64_t count = 40'000;
  produce(count);
  Consumer consumer = member(std::make_shared<SessionTime>(start));
  EXPECT_EQ(consumer.stats().prefetch_messages, 16U);
  std::uint64_t counted = 0;
  while (counted < count) {
    ASSERT_LT(RealClock::now(), deadline) << counted;
    const auto batch = consumer.receive_batch(0ms).value_or_throw();
    if (!batch) continue;
    counted += batch->size();
    consumer.acknowledge(*batch);
    if (counted > 25'000) {
      EXPECT_EQ(consumer.stats().prefetch_messages, 10'000U);
    }
  }
  consumer.close(10s).value_or_throw();
}

/// A member of a group in simulated time: its clock shows when its program goes on.
struct SimulatedMember {
  std::chrono::milliseconds work;  // on each message
  std::shared_ptr<SessionTime> time;
  std::optional<Consumer> consumer = std::nullopt;
  std::uint64_t done = 0;
  std::uint64_t done_late = 0;  // after the broker had delivered the last message
};

TEST_P(SessionPrefetchOverEach, ASlowMemberTakesNothingFromQuickOnes) {
  constexpr std::uint64_t count = 5'000;
  constexpr double ideal_ms = count / 3.01;
  produce(count);
  std::array<SimulatedMember, 4> members;
  for (SimulatedMember& each : members) {
    each.work = &each == &members[1] ? 100ms : 1ms;
    each.time = std::make_shared<SessionTime>(start);
    each.consumer.emplace(member(each.time));
  }
  SimulatedMember& slow = members[1];
  bool is_late = false;
  SessionTime end = start;
  for (std::uint64_t done = 0; done < count;) {
    ASSERT_LT(RealClock::now(), deadline) << done;
    SimulatedMember& each =
        *std::ranges::min_element(members, {}, [](const SimulatedMember& one) { return *one.time; });
    if (&each == &slow) is_late = is_late || ready() == 0;
    const auto message = each.consumer->receive(0ms).value_or_throw();
    if (!message) {  // it is on its way, unless the broker has no more
      is_late = is_late || ready() == 0;
      if (is_late) *each.time += 1ms;
      continue;
    }
    *each.time += each.work;
    end = std::max(end, *each.time);
    EXPECT_EQ(each.consumer->acknowledge(*message), 1U);
    ++done;
    ++each.done;
    if (is_late) ++each.done_late;
  }
  const std::chrono::duration<double, std::milli> taken = end - start;
  EXPECT_LE(taken.count(), 1.3 * ideal_ms);
  EXPECT_LE(slow.done_late, 2U) << "one in work, one that waits";
  EXPECT_LE(slow.done, 20U);
  for (SimulatedMember& each : members) {
    EXPECT_EQ(each.consumer->stats().again, 0U);
    each.consumer->close(10s).value_or_throw();
  }
}

}  // namespace
}  // namespace lightq::testing
