/// Tests of the broker's own producers in the table of a topic's producers: nobody else opens, evicts or
/// imitates them, and their numbers may leave out some.
#include <gtest/gtest.h>

#include "delivery/producers/producer_table.hpp"

namespace lightq::test {
namespace {

using broker::Admission;
using broker::ClientError;
using broker::ProducerTable;

constexpr std::int64_t own_day_us = 86'400'000'000;

class OwnProducersTest : public ::testing::Test {
 protected:
  static constexpr ProducerTable::Opener own{.user = ProducerTable::brokers_own};
  static constexpr std::uint64_t first = broker::own_sequences_begin;

  ClientError open(std::uint64_t id) { return table.open({id, 0}, 1, now, own).refusal; }
  void store(std::uint64_t id, std::uint64_t begin, std::uint64_t count = 1) {
    ASSERT_EQ(table.admit({{id, 0}, begin, count}), Admission::store);
    table.stored({{id, 0}, begin, count}, now);
  }

  Timestamp now{1'000'000};
  ProducerTable table{16, 7 * own_day_us};  // two own producers
};

TEST_F(OwnProducersTest, TheBrokerChoosesTheIdAndMayLeaveOutNumbers) {
  ASSERT_EQ(open(70), ClientError::none);
  store(70, first + 3, 2);
  EXPECT_EQ(table.admit({{70, 0}, first + 3, 1}), Admission::repeat);
  EXPECT_EQ(table.admit({{70, 0}, first, 1}), Admission::repeat) << "it was left out for good";
  EXPECT_EQ(table.admit({{70, 0}, first + 4, 2}), Admission::out_of_sequence);
  store(70, first + 9);
  const auto again = table.open({70, 0}, 1, now, own);
  EXPECT_EQ(again.refusal, ClientError::none);
  EXPECT_EQ(again.producer.expected, first + 10);
}

TEST_F(OwnProducersTest, NoUserOpensThemAndTheyOpenNoUsersProducer) {
  ASSERT_EQ(open(70), ClientError::none);
  store(70, first);
  EXPECT_EQ(table.open({70, 0}, 1, now, {.user = 0}).refusal, ClientError::unknown_producer);
  EXPECT_EQ(table.open({70, 0}, 1, now, {.user = 5}).refusal, ClientError::unknown_producer);
  ASSERT_EQ(table.open({}, 71, now, {.user = 5}).refusal, ClientError::none);
  EXPECT_EQ(open(71), ClientError::unknown_producer);
}

TEST_F(OwnProducersTest, NeitherTimeNorUsersRemoveThem) {
  ASSERT_EQ(open(70), ClientError::none);
  table.close(70, now);
  for (std::uint64_t id = 100; id < 140; ++id) {
    ASSERT_EQ(table.open({}, id, now, {.user = id}).refusal, ClientError::none);
    table.close(id, now);
  }
  for (int day = 0; day < 30; ++day) {
    now.us += own_day_us;
    table.expire(now);
  }
  EXPECT_NE(table.find(70), nullptr);
  EXPECT_EQ(table.size(), 1U) << "users' producers were idle for too long";
}

TEST_F(OwnProducersTest, TheyTakeAnEighthAndTheLongestClosedOneGoesFirst) {
  ASSERT_EQ(open(70), ClientError::none);
  ASSERT_EQ(open(71), ClientError::none);
  EXPECT_EQ(open(72), ClientError::limit_reached) << "both are open";
  table.close(71, now);
  ASSERT_EQ(open(72), ClientError::none);
  EXPECT_EQ(table.find(71), nullptr);
  EXPECT_NE(table.find(70), nullptr);
}

TEST_F(OwnProducersTest, OneHasAPlaceThatTheOthersCannotTake) {
  ASSERT_EQ(open(70), ClientError::none);
  ASSERT_EQ(open(71), ClientError::none);
  const ProducerTable::Opener with_place{.user = ProducerTable::brokers_own, .has_place = true};
  ASSERT_EQ(table.open({72, 0}, 1, now, with_place).refusal, ClientError::none);
  store(72, first);
  EXPECT_EQ(open(73), ClientError::limit_reached);
  ProducerTable restored{16, 7 * own_day_us};
  restored.restore(table.list());
  for (const std::uint64_t id : {70, 71, 72}) EXPECT_NE(restored.find(id), nullptr) << id;
}

// A transfer that rests has its producer closed, and needs it later.
TEST_F(OwnProducersTest, RunsTakeThePlacesOfRunsAndOfThoseThatHaveStoredNothing) {
  ASSERT_EQ(open(70), ClientError::none);
  store(70, first + 1);
  table.close(70, now);
  ASSERT_EQ(open(80), ClientError::none);
  table.close(80, now);
  for (std::uint64_t run = 90; run < 95; ++run) {
    ASSERT_EQ(open(run), ClientError::none);
    store(run, broker::run_sequences_begin + run);
    table.close(run, now);
    EXPECT_NE(table.find(70), nullptr);
    EXPECT_NE(table.find(run), nullptr);
    EXPECT_EQ(table.size(), 2U);
  }
  ASSERT_EQ(open(71), ClientError::none);
  EXPECT_EQ(table.find(94), nullptr);
  ASSERT_EQ(open(96), ClientError::none) << "without a run's, the longest closed one goes";
  EXPECT_EQ(table.find(70), nullptr);
}

TEST_F(OwnProducersTest, UsersWithAllOtherPlacesAreRefusedAndNothingElseHappens) {
  ASSERT_EQ(open(70), ClientError::none);
  for (std::uint64_t id = 100; id < 115; ++id)
    ASSERT_EQ(table.open({}, id, now, {.user = 0}).refusal, ClientError::none);
  EXPECT_EQ(table.open({}, 200, now, {.user = 0}).refusal, ClientError::limit_reached);
  EXPECT_EQ(open(71), ClientError::limit_reached);
  EXPECT_EQ(table.size(), 16U);
}

TEST_F(OwnProducersTest, ARestartRestoresThemAndRecognizesTheirBatches) {
  ASSERT_EQ(open(70), ClientError::none);
  store(70, first + 5);
  const auto saved = table.list();
  ProducerTable restored(16, 7 * own_day_us);
  restored.restore(saved);
  EXPECT_EQ(restored.find(70)->expected, first + 6);
  EXPECT_EQ(restored.find(70)->owner, ProducerTable::brokers_own);
  restored.found({{70, 0}, first + 9, 1});  // in the log, behind the saved state
  restored.found({{80, 0}, first + 2, 3});
  EXPECT_EQ(restored.find(70)->expected, first + 10);
  EXPECT_EQ(restored.find(80)->owner, ProducerTable::brokers_own);
  EXPECT_EQ(restored.open({80, 0}, 1, now, own).producer.expected, first + 5);
}

}  // namespace
}  // namespace lightq::test
