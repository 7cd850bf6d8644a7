/// Tests of what a consumer decides in each call without its channel: when it looks at the connection, and
/// which messages wait.
#include <lightq/detail/calls/consumer_pace.hpp>
#include <lightq/detail/calls/present_batch.hpp>

#include <gmock/gmock.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/batch_builder.hpp>
#include <lightq/base/batch_layout.hpp>

namespace lightq {
namespace {

using namespace std::chrono_literals;

constexpr SessionTime pace_start{1h};

int calls_before_a_look(ConsumerPace& pace) {
  int calls = 1;
  while (!pace.call()) ++calls;
  return calls;
}

TEST(ConsumerPace, LooksInEachCallUntilCallsFollowEachOtherQuickly) {
  ConsumerPace pace;
  EXPECT_EQ(calls_before_a_look(pace), 1);
  pace.looked(pace_start);
  EXPECT_EQ(calls_before_a_look(pace), 1) << "no call came shortly before";
  pace.looked(pace_start + 4ms);
  EXPECT_EQ(calls_before_a_look(pace), 16);
  pace.looked(pace_start + 9ms);
  EXPECT_EQ(calls_before_a_look(pace), 1) << "16 calls took 5 ms";
}

TEST(ConsumerPace, NoticesThatTheProgramWasAway) {
  ConsumerPace pace;
  EXPECT_FALSE(pace.was_away(pace_start)) << "it has nothing yet";
  pace.received(pace_start);
  EXPECT_FALSE(pace.was_away(pace_start + 99ms));
  EXPECT_TRUE(pace.was_away(pace_start + 100ms));
  pace.looked(pace_start + 150ms);
  EXPECT_FALSE(pace.was_away(pace_start + 249ms));
  EXPECT_TRUE(pace.was_away(pace_start + 250ms));
}

class PresentBatchTest : public ::testing::Test {
 protected:
  /// Puts a batch of messages with the offsets [10, 14) in: "a", "b", "c", "d".
  void put_four() {
    builder_.clear();
    for (const char* text : {"a", "b", "c", "d"}) builder_.add(as_byte_view(std::string_view(text)));
    const std::span<std::byte> bytes = builder_.finish();
    stamp_batch(bytes, Offset{10}, Timestamp{1}, 1);
    present_.put(DeliveredBatch(BatchView::trusted(bytes.data()), 1, 0), Offset{14});
  }
  static OffsetRange offsets(std::uint64_t begin, std::uint64_t end) { return {{begin}, {end}}; }

  PresentBatch present_;

 private:
  BatchBuilder builder_;
};

TEST_F(PresentBatchTest, PassesOnlyMessagesThatAreBegun) {
  put_four();
  present_.begun(Offset{12});
  EXPECT_TRUE(present_.is_begun());
  EXPECT_EQ(present_.take_all()->range(), offsets(10, 12));
  EXPECT_FALSE(present_.is_begun());
  EXPECT_TRUE(present_.is_ready());
  present_.begun(Offset{14});
  EXPECT_EQ(present_.take().text(), "c");
  EXPECT_EQ(present_.take_all()->range(), offsets(13, 14));
  EXPECT_FALSE(present_.is_begun());
}

TEST_F(PresentBatchTest, PassesMessagesOneByOne) {
  EXPECT_FALSE(present_.is_ready());
  EXPECT_FALSE(present_.has_batch());
  put_four();
  EXPECT_EQ(present_.left(), offsets(10, 14));
  for (const char* text : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(present_.is_ready());
    EXPECT_EQ(present_.take().text(), text);
  }
  EXPECT_FALSE(present_.is_ready());
  EXPECT_TRUE(present_.has_batch()) << "until it is cleared";
  present_.clear();
  EXPECT_FALSE(present_.has_batch());
}

TEST_F(PresentBatchTest, PassesTheRestAtOnce) {
  put_four();
  EXPECT_EQ(present_.take().text(), "a");
  EXPECT_EQ(present_.take_all()->range(), offsets(11, 14));
  EXPECT_FALSE(present_.is_ready());
  EXPECT_FALSE(present_.has_batch());
}

TEST_F(PresentBatchTest, LetsTheRestOfABatchWait) {
  EXPECT_EQ(present_.take_waiting(), std::nullopt);
  put_four();
  EXPECT_EQ(present_.waiting(), 4U);
  EXPECT_EQ(present_.take_waiting(), offsets(10, 14));
  (void)present_.take();
  EXPECT_EQ(present_.waiting(), 3U);
  EXPECT_EQ(present_.take_waiting(), offsets(11, 14)) << "whether or not anything was acknowledged";
  EXPECT_EQ(present_.take_waiting(), offsets(11, 14));
}

TEST_F(PresentBatchTest, LetsMessagesAfterTheLastAcknowledgementWaitOncePerAcknowledgement) {
  put_four();
  (void)present_.take_all();
  EXPECT_EQ(present_.take_waiting(), std::nullopt) << "nothing shows that the program works on them";
  present_.acknowledged(offsets(0, 10));
  present_.acknowledged(offsets(14, 20));
  EXPECT_EQ(present_.take_waiting(), std::nullopt) << "those are other messages";
  EXPECT_EQ(present_.waiting(), 4U);
  present_.acknowledged(offsets(10, 11));
  EXPECT_EQ(present_.take_waiting(), offsets(11, 14));
  EXPECT_EQ(present_.take_waiting(), std::nullopt);
  present_.acknowledged(offsets(12, 13));
  EXPECT_EQ(present_.waiting(), 1U);
  EXPECT_EQ(present_.take_waiting(), offsets(13, 14)) << "12 was processed, so 11 was received";
  present_.acknowledged(offsets(13, 99));
  EXPECT_EQ(present_.take_waiting(), offsets(14, 14));
}

TEST_F(PresentBatchTest, ForgetsWhatWasTakenAtOnceWhenItIsCleared) {
  put_four();
  (void)present_.take_all();
  present_.clear();
  present_.acknowledged(offsets(10, 11));
  EXPECT_EQ(present_.take_waiting(), std::nullopt);
}

TEST_F(PresentBatchTest, HasNothingAfterAMove) {
  put_four();
  PresentBatch moved = std::move(present_);
  EXPECT_FALSE(present_.is_ready());  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  EXPECT_FALSE(present_.has_batch());
  EXPECT_EQ(moved.take().text(), "a");
}

}  // namespace
}  // namespace lightq
