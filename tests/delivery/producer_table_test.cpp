/// What a topic remembers of its producers: no message is stored twice, and none is passed over.
#include "broker/delivery/producer_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/random.hpp"

namespace lightq::test {
namespace {

using broker::Admission;
using broker::KnownProducer;
using broker::ProducerTable;
using session::Code;
using session::ProducerIdentity;

constexpr std::int64_t day_us = 86'400'000'000;

class ProducerTableTest : public ::testing::Test {
 protected:
  ProducerIdentity begin(std::uint64_t fresh_id = 5) {
    const auto opened = table.open({}, fresh_id, now);
    EXPECT_EQ(opened.refusal, Code::ok);
    EXPECT_EQ(opened.producer.expected, 0U);
    return opened.producer.identity;
  }
  void store(ProducerIdentity producer, std::uint64_t first, std::uint64_t count) {
    ASSERT_EQ(table.admit({producer, first, count}), Admission::store);
    table.stored({producer, first, count}, now);
  }

  Timestamp now{1'000'000};
  ProducerTable table{3, 7 * day_us};
};

TEST_F(ProducerTableTest, MessagesAreStoredInTheirOrderAndOnce) {
  const auto producer = begin();
  store(producer, 0, 3);
  store(producer, 3, 1);
  EXPECT_EQ(table.admit({producer, 0, 3}), Admission::repeat);
  EXPECT_EQ(table.admit({producer, 3, 1}), Admission::repeat);
  EXPECT_EQ(table.admit({producer, 0, 4}), Admission::repeat);
  EXPECT_EQ(table.admit({producer, 3, 2}), Admission::out_of_sequence) << "half of it is stored";
  EXPECT_EQ(table.admit({producer, 5, 1}), Admission::out_of_sequence) << "4 is missing";
  EXPECT_EQ(table.admit({producer, 4, 1}), Admission::store);
}

TEST_F(ProducerTableTest, WhoComesBackGoesOnWhereItWas) {
  const auto producer = begin();
  store(producer, 0, 10);
  const auto again = table.open(producer, 99, now);
  EXPECT_EQ(again.refusal, Code::ok);
  EXPECT_EQ(again.producer.identity, producer);
  EXPECT_EQ(again.producer.expected, 10U);
}

TEST_F(ProducerTableTest, AHigherEpochShutsTheOlderOneOut) {
  const auto older = begin();
  store(older, 0, 2);
  const ProducerIdentity newer{older.id, 1};
  EXPECT_EQ(table.open(newer, 99, now).producer.expected, 2U);
  EXPECT_EQ(table.admit({older, 2, 1}), Admission::fenced);
  EXPECT_EQ(table.open(older, 99, now).refusal, Code::fenced);
  store(newer, 2, 1);
  EXPECT_EQ(table.admit({newer, 0, 2}), Admission::repeat) << "what the older one had stored";
}

TEST_F(ProducerTableTest, AnIdThatNobodyKnowsIsToldSo) {
  EXPECT_EQ(table.open({7, 0}, 99, now).refusal, Code::unknown_producer);
  EXPECT_EQ(table.admit({{7, 0}, 0, 1}), Admission::unknown);
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(ProducerTableTest, TheOneThatWasIdleLongestGoesFirst) {
  const auto first = begin(1);
  const auto second = begin(2);
  begin(3);
  store(first, 0, 1);
  begin(4);
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.admit({second, 0, 1}), Admission::unknown);
  EXPECT_EQ(table.admit({first, 1, 1}), Admission::store);
}

TEST_F(ProducerTableTest, WhoIsIdleForTooLongIsForgotten) {
  const auto idle = begin(1);
  now.us += 4 * day_us;
  const auto busy = begin(2);
  now.us += 3 * day_us;
  table.expire(now);
  EXPECT_EQ(table.size(), 2U) << "seven days are not yet over";
  now.us += 1;
  table.expire(now);
  EXPECT_EQ(table.find(idle.id), nullptr);
  EXPECT_NE(table.find(busy.id), nullptr);
  EXPECT_EQ(table.open(idle, 99, now).refusal, Code::unknown_producer);
}

TEST_F(ProducerTableTest, WhatTheLogHoldsIsLearnedFromIt) {
  table.stored({{8, 2}, 100, 5}, now);
  table.stored({{8, 3}, 105, 1}, now);
  ASSERT_NE(table.find(8), nullptr);
  EXPECT_EQ(table.find(8)->identity.epoch, 3);
  EXPECT_EQ(table.find(8)->expected, 106U);
  table.stored({{8, 3}, UINT64_MAX - 1, 65536}, now);
  EXPECT_EQ(table.find(8)->expected, UINT64_MAX) << "no number begins anew";
}

TEST_F(ProducerTableTest, AClockThatIsSetBackPutsNobodyBeforeItsTurn) {
  const auto first = begin(1);
  now.us -= day_us / 2;
  begin(2);
  begin(3);
  store(first, 0, 1);
  begin(4);
  EXPECT_NE(table.find(1), nullptr);
  EXPECT_EQ(table.find(2), nullptr);
}

// Against a plain list of all messages that were ever stored.
TEST(ProducerTableModelTest, NoMessageIsStoredTwiceWhateverIsSentAgain) {
  Random random;
  ProducerTable table(8, 7 * day_us);
  Timestamp now{0};
  std::map<std::uint64_t, std::uint64_t> stored;  // by id: how many
  std::vector<ProducerIdentity> producers;
  std::uint64_t last_id = 0;
  for (int step = 0; step < 200'000; ++step) {
    now.us += static_cast<std::int64_t>(random.below(1000));
    const std::uint64_t choice = random.below(100);
    if (producers.empty() || choice < 1) {
      producers.push_back(table.open({}, ++last_id, now).producer.identity);
      if (producers.size() > 16) producers.erase(producers.begin());
      continue;
    }
    ProducerIdentity& producer = producers[random.below(producers.size())];
    if (choice < 3) {
      const ProducerIdentity wanted{producer.id,
                                    static_cast<std::uint16_t>(producer.epoch + random.below(2))};
      const auto opened = table.open(wanted, 0, now);
      if (opened.refusal != Code::ok) continue;
      producer = opened.producer.identity;
      ASSERT_EQ(opened.producer.expected, stored[producer.id]);
      continue;
    }
    if (choice < 5) {
      const auto remembered = table.list();
      ProducerTable again(8, 7 * day_us);
      again.restore(remembered);
      ASSERT_EQ(remembered, again.list());
      table = std::move(again);
      continue;
    }
    const std::uint64_t have = stored[producer.id];
    const std::uint64_t first = have - std::min(have, random.below(6)) + random.below(3);
    const broker::Sequences batch{producer, first, 1 + random.below(5)};
    const Admission admission = table.admit(batch);
    const KnownProducer* const known = table.find(producer.id);
    if (known == nullptr) {
      ASSERT_EQ(admission, Admission::unknown);
    } else if (known->identity.epoch != producer.epoch) {
      ASSERT_EQ(admission, Admission::fenced);
    } else if (admission == Admission::store) {
      ASSERT_EQ(first, have);
      table.stored(batch, now);
      stored[producer.id] += batch.count;
    } else {
      ASSERT_EQ(admission, first + batch.count <= have ? Admission::repeat : Admission::out_of_sequence);
      ASSERT_NE(first, have);
    }
    ASSERT_LE(table.size(), 8U);
  }
}

}  // namespace
}  // namespace lightq::test
