/// Tests of the parts of a producer that have no state: the space for messages, and the errors.
#include <lightq/impl/producer_errors.hpp>
#include <lightq/impl/producer_space.hpp>

#include <gmock/gmock.h>

#include <string>

#include <lightq/detail/session_reports.hpp>
#include <lightq/impl/session_produce_link.hpp>

namespace lightq {
namespace {

using ::testing::HasSubstr;

class ProducerPartsTest : public ::testing::Test {
 protected:
  ProducerPartsTest() {
    options_.batch_bytes = 4096;
    options_.memory_bytes_max = 10'000;
  }

  static Result<SessionAddress> join_nothing() { return Error{ErrorCode::topic_not_found, "no such topic"}; }
  [[nodiscard]] BatchBuilder& open() { return link_.batches().open(); }

  ProducerOptions options_;
  SessionProduceLink link_{"orders", join_nothing, options_};
  SendReports reports_;
  const ProducerSpace space_{options_, link_};
  const ProducerErrors errors_{link_, false};
};

TEST_F(ProducerPartsTest, ABatchTakesWhatItsSizeLeaves) {
  EXPECT_EQ(space_.batch_bytes(), 4096U);
  EXPECT_EQ(space_.left_in_open(false), 4096 - open().size_bytes());
  const std::string text(3000, 'x');
  open().add(as_byte_view(text));
  EXPECT_EQ(space_.left_in_open(false), 4096 - open().size_bytes());
  open().add(as_byte_view(text));
  EXPECT_EQ(space_.left_in_open(false), 0U) << "it is full";
}

TEST_F(ProducerPartsTest, ABatchTakesNothingWithoutMemory) {
  open().add(as_byte_view(std::string(3000, 'x')));
  link_.batches().roll(1, false);
  ASSERT_LE(link_.batches().held_bytes(), 10'000U);
  const std::size_t left = 10'000 - link_.batches().held_bytes();
  EXPECT_TRUE(space_.has_room_for(left, false));
  EXPECT_FALSE(space_.has_room_for(left + 1, false));
  options_.memory_bytes_max = link_.batches().held_bytes() + 4095;
  EXPECT_EQ(space_.left_in_open(false), 0U) << "a whole batch must fit";
  open().add(as_byte_view(std::string_view("x")));
  EXPECT_GT(space_.left_in_open(false), 0U) << "the batch has its memory already";
}

TEST_F(ProducerPartsTest, OneBatchMayExceedTheMemory) {
  EXPECT_TRUE(space_.has_room_for(1'000'000, false));
  EXPECT_EQ(space_.left_in_open(true), space_.left_in_open(false)) << "no connection: nothing to wait for";
}

TEST_F(ProducerPartsTest, AProducerThatWasClosedTakesNothing) {
  EXPECT_TRUE(errors_.usable().ok());
  link_.close(reports_);
  EXPECT_EQ(space_.left_in_open(false), 0U);
  const Result<void> usable = errors_.usable();
  ASSERT_FALSE(usable.ok());
  EXPECT_EQ(usable.error().code, ErrorCode::closed);
  EXPECT_EQ(usable.error().message, "topic 'orders': the producer is closed");
}

TEST_F(ProducerPartsTest, ErrorsNameTheTopicAndTheReason) {
  const Error late = errors_.not_in_time("not confirmed", Timeout(20), 7);
  EXPECT_EQ(late.code, ErrorCode::timeout);
  EXPECT_THAT(late.message,
              HasSubstr("topic 'orders': not confirmed within 20 ms; 7 messages are not confirmed"));
  EXPECT_THAT(late.message, HasSubstr("not connected yet"));
  EXPECT_THAT(errors_.no_room(ErrorCode::limit_reached, 7).message, HasSubstr("memory_bytes_max"));
  EXPECT_THAT(errors_.inside(true).message, HasSubstr("writes a message"));
  EXPECT_THAT(errors_.inside(false).message, HasSubstr("callback"));
  const ProducerErrors moved(link_, true);
  EXPECT_THAT(moved.closed().message, HasSubstr("was moved from"));
  EXPECT_THAT(moved.last().message, HasSubstr("was moved from"));
}

}  // namespace
}  // namespace lightq
