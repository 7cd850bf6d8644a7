/// Tests of streams of server-sent events: their text, their order and their end.
#include "http/streams/event_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/streams/event_text.hpp"
#include "http/streams/stream_places.hpp"

namespace lightq::broker {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Runs tasks when the test says so.
class HandLoop final : public HttpLoop {
 public:
  void post(Task task) override { tasks_.push_back(std::move(task)); }
  void after(std::chrono::milliseconds /*delay*/, Task task) override { timers_.push_back(std::move(task)); }
  void run() {
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void run_timers() {
    for (const Task& task : std::exchange(timers_, {})) task();
    run();
  }

 private:
  std::deque<Task> tasks_;
  std::vector<Task> timers_;
};

StreamedMessages messages_with(const std::vector<std::string>& payloads, std::uint64_t lost = 0) {
  StreamedMessages streamed;
  streamed.lost = lost;
  for (const std::string& payload : payloads) {
    ReceivedMessage message;
    message.offset = {streamed.messages.size() + 7};
    message.marks.delivery = 0;
    message.payload = payload;
    streamed.amount += {1, payload.size()};
    streamed.messages.push_back(std::move(message));
  }
  return streamed;
}

class EventStreamTest : public ::testing::Test {
 protected:
  std::shared_ptr<EventStream> made() {
    return std::make_shared<EventStream>(EventStream::Parts{
        loop_, [this](HttpResponse response) { responses_.push_back(std::move(response)); },
        [this](std::string_view part, bool is_last) {
          parts_.push_back(std::string(part) + (is_last ? "|" : ""));
        },
        [this](const std::function<void(MessageDesk&)>& call) {
          if (is_desk_busy_) return false;
          ++desk_calls_;
          call(desk_);
          return true;
        },
        nullptr});
  }
  std::shared_ptr<EventStream> opened(std::uint64_t lease) {
    auto stream = made();
    stream->opened({.stream = 1, .lease = lease, .next = {}});
    loop_.run();
    return stream;
  }

  HandLoop loop_;
  MessageDesk desk_;
  std::vector<HttpResponse> responses_;
  std::vector<std::string> parts_;
  bool is_desk_busy_ = false;
  int desk_calls_ = 0;
};

TEST_F(EventStreamTest, ARefusalIsAnOrdinaryResponse) {
  made()->ended({ErrorCode::unauthorized_access, "no"});
  loop_.run();
  ASSERT_EQ(responses_.size(), 1U);
  EXPECT_EQ(responses_[0].status, 403U);
  EXPECT_FALSE(responses_[0].is_stream);
}

TEST_F(EventStreamTest, BeginsWithItsLease) {
  const auto stream = opened(0xAB);
  ASSERT_EQ(responses_.size(), 1U);
  EXPECT_TRUE(responses_[0].is_stream);
  EXPECT_EQ(responses_[0].content_type, "text/event-stream");
  EXPECT_EQ(responses_[0].body, "event: lease\ndata: {\"lease\":\"00000000000000ab\"}\n\n");
  const auto other = opened(0);
  EXPECT_EQ(responses_[1].body, ":\n\n");
}

TEST_F(EventStreamTest, SendsNoMoreBeforeTheLastPartIsTaken) {
  const auto stream = opened(0);
  stream->sent(messages_with({"a"}));
  loop_.run();
  EXPECT_THAT(parts_, IsEmpty()) << "the head is not taken yet";
  responses_[0].taken();
  ASSERT_EQ(parts_.size(), 1U);
  EXPECT_EQ(parts_[0], "id: 7\ndata: {\"offset\":7,\"stored_us\":0,\"payload\":\"a\"}\n\n");
  EXPECT_EQ(desk_calls_, 0) << "it is not taken yet";
  stream->sent(messages_with({"b"}));
  stream->sent(messages_with({"c"}));
  loop_.run();
  EXPECT_EQ(parts_.size(), 1U);
  responses_[0].taken();
  EXPECT_EQ(desk_calls_, 1);
  ASSERT_EQ(parts_.size(), 2U);
  EXPECT_THAT(parts_[1], HasSubstr("\"b\""));
  EXPECT_THAT(parts_[1], HasSubstr("\"c\""));
}

TEST_F(EventStreamTest, CountsTheBytesOfMessagesUntilTheyAreTaken) {
  const auto copies = std::make_shared<CopiedBytes>(10);
  const auto held_with = [&](std::size_t bytes) {
    StreamedMessages messages = messages_with({"a"});
    messages.held = std::make_shared<CopiedBytes::Holding>(copies);
    messages.held->add(bytes);
    return messages;
  };
  const auto stream = opened(0);
  stream->sent(held_with(9));
  loop_.run();
  responses_[0].taken();
  EXPECT_EQ(copies->held(), 9U);
  EXPECT_TRUE(copies->has_room());
  stream->sent(held_with(4));
  loop_.run();
  EXPECT_EQ(copies->held(), 13U);
  EXPECT_FALSE(copies->has_room());
  responses_[0].taken();
  EXPECT_EQ(copies->held(), 4U) << "the second part is not taken yet";
  responses_[0].not_sent();
  EXPECT_EQ(copies->held(), 0U);
}

TEST_F(EventStreamTest, ReportsAgainIfTheDeskWasBusy) {
  const auto stream = opened(0);
  responses_[0].taken();
  stream->sent(messages_with({"a"}));
  loop_.run();
  is_desk_busy_ = true;
  responses_[0].taken();
  EXPECT_EQ(desk_calls_, 0);
  is_desk_busy_ = false;
  loop_.run_timers();
  EXPECT_EQ(desk_calls_, 1);
}

TEST_F(EventStreamTest, EndsWithAnEvent) {
  const auto stream = opened(0);
  stream->sent(messages_with({"a"}, 3));
  stream->ended({ErrorCode::topic_not_found, "topic\nnot found"});
  loop_.run();
  responses_[0].taken();
  ASSERT_EQ(parts_.size(), 1U);
  EXPECT_THAT(parts_[0], StartsWith("event: lost\ndata: {\"lost\":3}\n\nid: 7\n"));
  EXPECT_THAT(parts_[0], HasSubstr("event: end\ndata: {\"title\":\"Not Found\",\"status\":404,"));
  EXPECT_THAT(parts_[0], ::testing::EndsWith("}\n\n|"));
  responses_[0].not_sent();
  EXPECT_EQ(desk_calls_, 0) << "the desk has ended it";
}

TEST_F(EventStreamTest, LeavesTheDeskWhenItsClientHasGone) {
  const auto stream = opened(0);
  is_desk_busy_ = true;
  responses_[0].not_sent();
  stream->sent(messages_with({"a"}));
  loop_.run();
  EXPECT_THAT(parts_, IsEmpty());
  EXPECT_EQ(desk_calls_, 0);
  is_desk_busy_ = false;
  loop_.run_timers();
  EXPECT_EQ(desk_calls_, 1);
}

TEST_F(EventStreamTest, AHeartbeatComesOnlyWhenNothingIsSent) {
  const auto stream = opened(0);
  responses_[0].taken();
  loop_.run_timers();
  EXPECT_THAT(parts_, ElementsAre(":\n\n"));
  loop_.run_timers();
  EXPECT_EQ(parts_.size(), 1U) << "the first is not taken yet";
  responses_[0].taken();
  loop_.run_timers();
  EXPECT_EQ(parts_.size(), 2U);
}

TEST_F(EventStreamTest, ATimerDoesNotKeepAStream) {
  auto stream = opened(0);
  responses_[0].taken();
  responses_.clear();
  const std::weak_ptr<EventStream> watched = stream;
  stream.reset();
  EXPECT_TRUE(watched.expired());
  loop_.run_timers();
  EXPECT_THAT(parts_, IsEmpty());
}

TEST(StreamPlaces, AreLimitedInAllAndForEachSource) {
  StreamPlaces places(3, 2);
  auto one = places.take("a");
  const auto two = places.take("a");
  EXPECT_NE(one, nullptr);
  EXPECT_NE(two, nullptr);
  EXPECT_EQ(places.take("a"), nullptr);
  const auto three = places.take("b");
  EXPECT_NE(three, nullptr);
  EXPECT_EQ(places.take("c"), nullptr);
  one.reset();
  EXPECT_NE(places.take("c"), nullptr);
  EXPECT_NE(places.take("a"), nullptr);
}

}  // namespace

}  // namespace lightq::broker
