/// Tests of a producer's channel: its confirms of messages that earlier channels have stored.
#include "session/produce_channel.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/batch_builder.hpp>

#include "endpoint/topic_runtime_harness.hpp"
#include "session/channel_book.hpp"
#include "session/frame_translation.hpp"
#include "session/session_channels.hpp"
#include "session/session_wire.hpp"
#include "topic/runtime/topic_schedule.hpp"

namespace lightq::broker {
namespace {

using session::ConfirmLevel;
using Target = session::ProduceTarget;

/// The topic flushes once an hour, so nothing becomes durable unless a channel asks for it.
class ProduceChannelTest : public TopicRuntimeTest, public testing::WithParamInterface<Target> {
 protected:
  ProduceChannelTest()
      : TopicRuntimeTest({.broker_type = protocol::BrokerType::file},
                         std::chrono::milliseconds(std::chrono::hours(1)).count()) {}
  ~ProduceChannelTest() override { book.drop_all(); }

  ProduceTarget& target() {
    if (GetParam() == Target::log) return topic->publishing();
    return *topic->schedule().target().value_or_throw();
  }
  /// Opens a channel, and waits until it may begin.
  ProduceChannel& open(ConfirmLevel level, std::uint64_t producer = 0) {
    auto made = std::make_unique<ProduceChannel>(*topic, target(), channels, due, book.take_number());
    ProduceChannel& channel = *made;
    const session::ProduceOpen asked{{producer, 0}, level, "orders", {}, GetParam()};
    EXPECT_EQ(channel.open(asked, {.batch_bytes_max = 1 << 20}), session::Code::ok);
    book.add(std::move(made), 1);
    EXPECT_TRUE(run_until([&] { return book.find_open(channel.number()) != nullptr; }));
    return channel;
  }
  /// Sends a batch of two messages.
  void produce(ProduceChannel& channel, std::uint64_t sequence) {
    Attributes attributes;
    AttributeKinds kinds;
    if (GetParam() == Target::schedule) {
      attributes.delay = std::chrono::hours(1);
      kinds = AttributeKinds(AttributeKinds::dues);
    }
    BatchBuilder builder;
    for (const char* payload : {"a", "b"}) builder.add(as_byte_view(payload), attributes, kinds);
    const auto bytes = builder.finish({channel.producer_id(), sequence, 0});
    std::vector<std::byte> body(bytes.begin(), bytes.end());
    channel.produce(body, false);
    target().published();
  }
  /// Returns the confirms that are due, as "received/flushed/next offset".
  std::vector<std::string> confirms() {
    std::vector<std::string> found;
    due.take_each([&](std::uint32_t number) {
      auto& channel = static_cast<ProduceChannel&>(*book.find(number));
      do {
        const session::Confirm confirm = channel.take_confirm();
        found.push_back(std::to_string(confirm.received) + "/" + std::to_string(confirm.flushed) + "/" +
                        std::to_string(confirm.next_offset));
      } while (channel.has_more_confirms());
    });
    return found;
  }
  /// Returns the confirms that come next.
  std::vector<std::string> next_confirms() {
    std::vector<std::string> found;
    EXPECT_TRUE(run_until([&] { return !(found = confirms()).empty(); }));
    return found;
  }
  /// Returns the id of a producer that has stored two messages, which are not durable yet.
  std::uint64_t stored_by_another_channel() {
    ProduceChannel& channel = open(ConfirmLevel::received);
    produce(channel, 0);
    EXPECT_EQ(next_confirms().size(), 1U);
    EXPECT_LT(target().ends().durable, target().ends().next);
    const std::uint64_t producer = channel.producer_id();
    book.drop(channel.number());
    return producer;
  }
  /// Returns the present next offset as confirms have it.
  std::string next_offset() { return "/" + std::to_string(target().ends().next.value); }

  test::SessionWire wire;
  ChannelBook book{wire.loop, 16};
  SessionChannels channels{book, wire.frames, wire.session_life};
  ChannelNumbers due;
};

TEST_P(ProduceChannelTest, WhatIsStoredAlreadyIsMadeDurableAndConfirmedUnasked) {
  const std::uint64_t producer = stored_by_another_channel();
  ProduceChannel& again = open(ConfirmLevel::flushed, producer);
  EXPECT_EQ(next_confirms(), std::vector{"2/2" + next_offset()});
  EXPECT_EQ(target().ends().durable, target().ends().next);
  EXPECT_TRUE(again.settled());
  EXPECT_TRUE(confirms().empty()) << "once is enough";
}

TEST_P(ProduceChannelTest, WhatIsDurableAlreadyIsConfirmedAtOnce) {
  const std::uint64_t producer = stored_by_another_channel();
  open(ConfirmLevel::flushed, producer);
  next_confirms();
  open(ConfirmLevel::flushed, producer);  // fences the former channel
  EXPECT_EQ(confirms(), std::vector{"2/2" + next_offset()});
}

TEST_P(ProduceChannelTest, ConfirmsFurtherBatchesAsEver) {
  const std::uint64_t producer = stored_by_another_channel();
  open(ConfirmLevel::flushed, producer);
  next_confirms();
  ProduceChannel& again = open(ConfirmLevel::flushed, producer);
  produce(again, 2);
  const std::string next = next_offset();
  EXPECT_EQ(confirms(), std::vector{"4/2" + next}) << "the opening is confirmed with the batch";
  EXPECT_FALSE(again.settled());
  EXPECT_EQ(next_confirms(), std::vector{"4/4" + next});
  EXPECT_TRUE(again.settled());
}

TEST_P(ProduceChannelTest, NothingIsConfirmedToAFreshProducer) {
  EXPECT_TRUE(open(ConfirmLevel::flushed).settled());
  EXPECT_TRUE(confirms().empty());
}

TEST_P(ProduceChannelTest, TheOpeningItselfConfirmsWhatIsReceived) {
  const std::uint64_t producer = stored_by_another_channel();
  EXPECT_TRUE(open(ConfirmLevel::received, producer).settled());
  EXPECT_TRUE(confirms().empty());
  EXPECT_LT(target().ends().durable, target().ends().next) << "nobody asked for a flush";
}

INSTANTIATE_TEST_SUITE_P(Targets, ProduceChannelTest, testing::Values(Target::log, Target::schedule),
                         [](const auto& each) { return each.param == Target::log ? "log" : "schedule"; });

}  // namespace
}  // namespace lightq::broker
