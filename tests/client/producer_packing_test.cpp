/// Tests of ProducerPacking: how many messages it takes without its driver, their numbers and attributes.
#include <lightq/detail/calls/producer_packing.hpp>

#include <gmock/gmock.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <lightq/base/batch_builder.hpp>

namespace lightq {
namespace {

class ProducerPackingTest : public ::testing::Test {
 protected:
  static constexpr std::size_t one = record_bytes(1);  // the record of a message of one byte

  static void write_nothing(std::span<std::byte> /*to*/) {}
  static Attributes with_key() { return Attributes{.key = "tea"}; }

  BatchBuilder batch_;
  BatchBuilder next_batch_;
  SendReports reports_;
  ProducerPacking packing_{batch_, reports_};
};

TEST_F(ProducerPackingTest, TakesAsManyBytesAsItWasGiven) {
  EXPECT_FALSE(packing_.takes(one)) << "it does not know of any room yet";
  packing_.refresh(2 * one, 100);
  EXPECT_EQ(packing_.add(as_byte_view(std::string_view("a")), one), 0U);
  ASSERT_TRUE(packing_.takes(one));
  EXPECT_EQ(packing_.add_in_place(1, one, write_nothing), 1U);
  EXPECT_FALSE(packing_.takes(one));
  EXPECT_EQ(packing_.sent(), 2U);
  EXPECT_EQ(batch_.record_count(), 2U);
}

TEST_F(ProducerPackingTest, TakesNoMessageThatIsTooLarge) {
  packing_.refresh(1000, 100);
  EXPECT_TRUE(packing_.takes(100));
  EXPECT_FALSE(packing_.takes(101));
  EXPECT_EQ(packing_.record_bytes_max(), 100U);
}

TEST_F(ProducerPackingTest, TakesNothingWhileAMessageIsWritten) {
  packing_.refresh(1000, 100);
  EXPECT_FALSE(packing_.is_writing());
  packing_.add_in_place(1, one, [this](std::span<std::byte>) {
    EXPECT_TRUE(packing_.is_writing());
    EXPECT_FALSE(packing_.takes(one));
  });
  EXPECT_FALSE(packing_.is_writing());
  EXPECT_TRUE(packing_.takes(one)) << "the room is back";
}

TEST_F(ProducerPackingTest, AddsNothingIfTheWriterThrows) {
  packing_.refresh(1000, 100);
  const auto fail = [](std::span<std::byte>) { throw std::runtime_error("no message"); };
  int reported = 0;
  const auto count = [&](Fate, const Error*) { ++reported; };
  EXPECT_THROW(packing_.add_in_place(1, one, fail), std::runtime_error);
  EXPECT_THROW(packing_.add_in_place(1, fail, with_key(), count), std::runtime_error);
  EXPECT_FALSE(packing_.is_writing());
  EXPECT_EQ(packing_.sent(), 0U);
  EXPECT_TRUE(batch_.empty());
  reports_.settled(0, 1, Fate::confirmed, nullptr);
  EXPECT_EQ(reported, 0) << "the callback belongs to no message";
}

TEST_F(ProducerPackingTest, GivesAMessageItsOwnCallback) {
  packing_.refresh(1000, 100);
  int reported = 0;
  packing_.add(as_byte_view(std::string_view("a")), one);
  EXPECT_EQ(packing_.add_in_place(1, write_nothing, {}, [&](Fate, const Error*) { ++reported; }), 1U);
  reports_.settled(0, 1, Fate::confirmed, nullptr);
  EXPECT_EQ(reported, 0);
  reports_.settled(1, 2, Fate::confirmed, nullptr);
  EXPECT_EQ(reported, 1);
}

TEST_F(ProducerPackingTest, HasMessagesCheckedWhileTheBatchHasAttributes) {
  packing_.refresh(1000, 100);
  packing_.add_in_place(1, write_nothing, with_key(), {});
  EXPECT_FALSE(packing_.takes(one));
  packing_.refresh(900, 100);
  EXPECT_FALSE(packing_.takes(one));
  const auto bare = packing_.bytes_in_open(1, {});
  const auto keyed = packing_.bytes_in_open(1, with_key());
  ASSERT_TRUE(bare && keyed);
  EXPECT_GT(*bare, 1U) << "each message of the batch has a key, if only an empty one";
  EXPECT_EQ(*keyed - *bare, 3U) << "the bytes of the key";
  EXPECT_EQ(packing_.bytes_in_open(1, Attributes{.time = Timestamp{7}}), std::nullopt)
      << "the batch has no times";
}

TEST_F(ProducerPackingTest, BeginsABatchWithTheKindsOfTheLastOne) {
  packing_.refresh(1000, 100);
  packing_.add_in_place(1, write_nothing, with_key(), {});
  packing_.begin(next_batch_);
  packing_.refresh(1000, 100);
  EXPECT_FALSE(packing_.takes(one)) << "the batch will have keys";
  packing_.add_in_place(1, write_nothing, {}, {});
  EXPECT_TRUE(next_batch_.kinds().has_all_of(AttributeKinds(with_key())));
  batch_.clear();
  packing_.begin(batch_);
  packing_.refresh(1000, 100);
  EXPECT_TRUE(packing_.takes(one)) << "no message of the last batch had a key";
}

TEST_F(ProducerPackingTest, BeginsABatchWithAMessagesOwnKindsIfTheOthersDoNotFit) {
  packing_.refresh(1000, 100);
  packing_.use(AttributeKinds(with_key()));
  packing_.begin(next_batch_);
  packing_.refresh(1000, one);
  EXPECT_EQ(packing_.bytes_in_open(1, {}), 1U);
  packing_.refresh(1000, 100);
  EXPECT_GT(packing_.bytes_in_open(1, {}), 1U);
}

TEST_F(ProducerPackingTest, TakesNothingAfterAMove) {
  packing_.refresh(1000, 100);
  ProducerPacking moved = std::move(packing_);
  EXPECT_FALSE(packing_.takes(one));  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  EXPECT_TRUE(moved.takes(one));
  EXPECT_EQ(moved.add(as_byte_view(std::string_view("a")), one), 0U);
}

}  // namespace
}  // namespace lightq
