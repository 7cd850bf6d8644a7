/// Tests of the table of a topic's producers: no message is stored twice, and none is skipped.
#include "delivery/producers/producer_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "support/random.hpp"

namespace lightq::test {
namespace {

using broker::Admission;
using broker::ClientError;
using broker::KnownProducer;
using broker::ProducerIdentity;
using broker::ProducerSecret;
using broker::ProducerTable;

constexpr std::int64_t day_us = 86'400'000'000;

class ProducerTableTest : public ::testing::Test {
 protected:
  ProducerIdentity begin(std::uint64_t fresh_id = 5) {
    const auto opened = table.open({}, fresh_id, now);
    EXPECT_EQ(opened.refusal, ClientError::none);
    EXPECT_EQ(opened.producer.expected, 0U);
    return opened.producer.identity;
  }
  /// Adds a producer that has stored a message, and that no channel has open any more.
  ProducerIdentity leave_behind(std::uint64_t fresh_id, std::uint64_t user = 0) {
    const auto producer = table.open({}, fresh_id, now, {user}).producer.identity;
    store(producer, 0, 1);
    table.close(producer.id, now);
    return producer;
  }
  /// Passes days with some activity every day.
  void pass_days(std::int64_t days) {
    for (std::int64_t day = 0; day < days; ++day) {
      now.us += day_us;
      table.expire(now);
    }
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

TEST_F(ProducerTableTest, AReturningProducerContinuesAtItsPosition) {
  const auto producer = begin();
  store(producer, 0, 10);
  const auto again = table.open(producer, 99, now);
  EXPECT_EQ(again.refusal, ClientError::none);
  EXPECT_EQ(again.producer.identity, producer);
  EXPECT_EQ(again.producer.expected, 10U);
}

TEST_F(ProducerTableTest, AHigherEpochShutsTheOlderOneOut) {
  const auto older = begin();
  store(older, 0, 2);
  const ProducerIdentity newer{older.id, 1};
  EXPECT_EQ(table.open(newer, 99, now).producer.expected, 2U);
  EXPECT_EQ(table.admit({older, 2, 1}), Admission::fenced);
  EXPECT_EQ(table.open(older, 99, now).refusal, ClientError::fenced);
  store(newer, 2, 1);
  EXPECT_EQ(table.admit({newer, 0, 2}), Admission::repeat) << "what the older one had stored";
}

// Otherwise the last possible epoch would fence all other producers for good.
TEST_F(ProducerTableTest, EpochsRestartAfterTheLastOne) {
  const auto producer = begin();
  ASSERT_EQ(table.open({producer.id, 32'767}, 99, now).refusal, ClientError::none);
  ASSERT_EQ(table.open({producer.id, 65'534}, 99, now).refusal, ClientError::none);
  ASSERT_EQ(table.open({producer.id, 65'535}, 99, now).refusal, ClientError::none);
  EXPECT_EQ(table.open({producer.id, 65'534}, 99, now).refusal, ClientError::fenced);
  ASSERT_EQ(table.open({producer.id, 0}, 99, now).refusal, ClientError::none);
  EXPECT_EQ(table.open({producer.id, 65'535}, 99, now).refusal, ClientError::fenced);
  table.found({{producer.id, 1}, 0, 1});
  table.found({{producer.id, 65'535}, 1, 1});
  EXPECT_EQ(table.find(producer.id)->identity.epoch, 1U);
}

TEST_F(ProducerTableTest, AnUnknownIdIsReported) {
  EXPECT_EQ(table.open({7, 0}, 99, now).refusal, ClientError::unknown_producer);
  EXPECT_EQ(table.admit({{7, 0}, 0, 1}), Admission::unknown);
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(ProducerTableTest, TheLongestIdleProducerIsForgottenFirst) {
  const auto first = leave_behind(1);
  const auto second = leave_behind(2);
  leave_behind(3);
  EXPECT_EQ(table.open(first, 99, now).refusal, ClientError::none);
  table.close(first.id, now);
  begin(4);
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.admit({second, 1, 1}), Admission::unknown);
  EXPECT_EQ(table.admit({first, 1, 1}), Admission::store);
}

TEST_F(ProducerTableTest, AnOpenProducerIsNeverForgotten) {
  const auto open = begin(1);
  for (std::uint64_t id = 10; id < 50; ++id) leave_behind(id, 7);
  for (std::uint64_t id = 50; id < 90; ++id)
    table.close(table.open({}, id, now, {7}).producer.identity.id, now);
  EXPECT_EQ(table.admit({open, 0, 1}), Admission::store);
  pass_days(30);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.admit({open, 0, 1}), Admission::store);
}

TEST_F(ProducerTableTest, WhenAllAreOpenTheNextOneIsRefused) {
  for (std::uint64_t id = 1; id <= 3; ++id) begin(id);
  EXPECT_EQ(table.open({}, 4, now).refusal, ClientError::limit_reached);
  EXPECT_EQ(table.size(), 3U);
  EXPECT_EQ(table.open({2, 1}, 99, now).refusal, ClientError::none) << "which is open already";
  table.close(2, now);
  EXPECT_EQ(table.open({}, 4, now).refusal, ClientError::limit_reached) << "the newer channel has it still";
  table.close(2, now);
  EXPECT_EQ(table.open({}, 4, now).refusal, ClientError::none);
  EXPECT_EQ(table.find(2), nullptr);
}

TEST_F(ProducerTableTest, ProducersWithoutMessagesAreForgottenFirst) {
  const auto first = leave_behind(1);
  begin(2);
  table.close(2, now);
  const auto third = leave_behind(3);
  begin(4);
  EXPECT_EQ(table.find(2), nullptr);
  EXPECT_NE(table.find(first.id), nullptr);
  EXPECT_NE(table.find(third.id), nullptr);
}

TEST_F(ProducerTableTest, AnIdleProducerIsForgotten) {
  const auto idle = leave_behind(1);
  pass_days(4);
  const auto busy = leave_behind(2);
  pass_days(3);
  EXPECT_EQ(table.size(), 2U) << "seven days are not yet over";
  now.us += 1;
  table.expire(now);
  EXPECT_EQ(table.find(idle.id), nullptr);
  EXPECT_NE(table.find(busy.id), nullptr);
  EXPECT_EQ(table.open(idle, 99, now).refusal, ClientError::unknown_producer);
}

// A producer that was connected until now must not count as idle. This one is open and silent for 8 days
// before its connection breaks.
TEST_F(ProducerTableTest, AProducerThatWasOpenUntilNowIsNotIdle) {
  const auto silent = begin(1);
  store(silent, 0, 1);
  pass_days(8);
  table.close(silent.id, now);
  now.us += 300'000;
  const auto again = table.open(silent, 99, now);
  EXPECT_EQ(again.refusal, ClientError::none);
  EXPECT_EQ(again.producer.expected, 1U);
  table.close(silent.id, now);
  pass_days(7);
  EXPECT_NE(table.find(silent.id), nullptr);
  pass_days(1);
  EXPECT_EQ(table.find(silent.id), nullptr);
}

TEST_F(ProducerTableTest, AStepOfTheClockForgetsNoProducer) {
  const auto producer = leave_behind(1);
  for (const std::int64_t step : {3'650 * day_us, -3'650 * day_us, 8 * day_us}) {
    now.us += step;
    leave_behind(2);
    table.forget(2);
    EXPECT_EQ(table.open(producer, 99, now).refusal, ClientError::none) << step / day_us;
    table.close(producer.id, now);
  }
}

// Idle time is measured while the broker runs. The clock may be wrong at a start.
TEST_F(ProducerTableTest, AfterARestartAllAreAsIdleAsTheyWere) {
  const auto idle = leave_behind(1);
  pass_days(5);
  const auto open = begin(2);
  store(open, 0, 1);
  for (const std::int64_t step : {3'650 * day_us, -7'300 * day_us}) {
    table.restore(table.list());
    now.us += step;
    table.expire(now);
    EXPECT_EQ(table.size(), 2U);
  }
  pass_days(2);
  EXPECT_NE(table.find(idle.id), nullptr);
  pass_days(1);
  EXPECT_EQ(table.find(idle.id), nullptr);
  EXPECT_NE(table.find(open.id), nullptr);
}

// A crash must not make an open producer idle, even if it was silent for long.
TEST_F(ProducerTableTest, AnOpenProducerIsListedAsUsedNow) {
  const auto silent = begin(1);
  store(silent, 0, 1);
  pass_days(10);
  leave_behind(2);
  table.restore(table.list());
  table.expire(now);
  EXPECT_EQ(table.open(silent, 99, now).refusal, ClientError::none);
}

TEST_F(ProducerTableTest, ImpossibleTimesAreIgnored) {
  table.restore({{{1, 0}, 1, {INT64_MIN}}, {{2, 0}, 1, {INT64_MAX}}, {{3, 0}, 1, {0}}});
  table.expire(now);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.size(), 2U);
  table.restore({{{1, 0}, 1, {INT64_MIN}}});
  table.expire(now);
  EXPECT_EQ(table.size(), 1U);
}

TEST_F(ProducerTableTest, LearnsTheMessagesOfTheLog) {
  table.stored({{8, 2}, 100, 5}, now);
  table.stored({{8, 3}, 105, 1}, now);
  ASSERT_NE(table.find(8), nullptr);
  EXPECT_EQ(table.find(8)->identity.epoch, 3);
  EXPECT_EQ(table.find(8)->expected, 106U);
  table.stored({{8, 3}, UINT64_MAX - 1, 65536}, now);
  EXPECT_EQ(table.find(8)->expected, UINT64_MAX) << "no number begins anew";
}

TEST_F(ProducerTableTest, AClockThatIsSetBackDoesNotForgetAProducerEarly) {
  const auto first = leave_behind(1);
  now.us -= day_us / 2;
  leave_behind(2);
  EXPECT_EQ(table.list().front().identity, first);
  leave_behind(3);
  EXPECT_EQ(table.open(first, 99, now).refusal, ClientError::none);
  table.close(1, now);
  begin(4);
  EXPECT_NE(table.find(1), nullptr);
  EXPECT_EQ(table.find(2), nullptr);
}

constexpr std::uint64_t ann = 7;
constexpr std::uint64_t bob = 8;

class ProducersOfUsersTest : public ::testing::Test {
 protected:
  ClientError open(std::uint64_t user, std::uint64_t id) { return table.open({}, id, now, {user}).refusal; }
  void leave_behind(std::uint64_t user, std::uint64_t from, std::uint64_t count) {
    for (std::uint64_t id = from; id < from + count; ++id) {
      ASSERT_EQ(open(user, id), ClientError::none);
      table.stored({{id, 0}, 0, 1}, now);
      table.close(id, now);
    }
  }
  std::size_t known(std::uint64_t from, std::uint64_t before) {
    std::size_t count = 0;
    for (std::uint64_t id = from; id < before; ++id) count += table.find(id) != nullptr ? 1 : 0;
    return count;
  }

  Timestamp now{1'000'000};
  ProducerTable table{16, 7 * day_us};
};

TEST_F(ProducersOfUsersTest, AUserWithManyEvictsItsOwn) {
  leave_behind(bob, 1, 6);
  leave_behind(ann, 100, 1000);
  EXPECT_EQ(known(1, 7), 6U);
  EXPECT_EQ(known(1090, 1100), 10U) << "its last ones";
}

TEST_F(ProducersOfUsersTest, NoUserIsEvictedBelowHalfByOneOther) {
  leave_behind(bob, 1, 16);
  leave_behind(ann, 100, 1000);
  EXPECT_EQ(known(1, 17), 8U);
}

TEST_F(ProducersOfUsersTest, AUserWithHalfOfThemOpenCannotUseTheReserve) {
  std::uint64_t id = 100;
  while (open(ann, id) == ClientError::none) ++id;
  EXPECT_EQ(id, 114U);
  EXPECT_EQ(open(bob, 1), ClientError::none);
  EXPECT_EQ(open(bob, 2), ClientError::none);
  EXPECT_EQ(open(bob, 3), ClientError::limit_reached);
  table.close(100, now);
  EXPECT_EQ(table.open({101, 1}, 99, now, {ann}).refusal, ClientError::none) << "which it has open";
  EXPECT_EQ(open(ann, id), ClientError::limit_reached);
  EXPECT_EQ(open(bob, 3), ClientError::none);
}

TEST_F(ProducersOfUsersTest, ProducersFromBeforeARestartAreAnonymousAndEvictedLikeAUsers) {
  leave_behind(bob, 1, 16);
  table.restore(table.list());
  ASSERT_EQ(table.open({16, 0}, 99, now, {bob}).refusal, ClientError::none);
  table.close(16, now);
  leave_behind(ann, 100, 1000);
  EXPECT_EQ(known(16, 17), 1U) << "which has come back";
  EXPECT_GE(known(1, 16), 7U);
}

TEST_F(ProducersOfUsersTest, AnIdIsValidForTheUserThatReceivedIt) {
  leave_behind(ann, 1, 1);
  for (int start = 0; start < 2; ++start) {
    for (const std::uint64_t other : {std::uint64_t{0}, bob, broker::FairShare::anonymous}) {
      EXPECT_EQ(table.open({1, 0}, 99, now, {other}).refusal, ClientError::unknown_producer) << other;
      EXPECT_EQ(table.open({1, 1}, 99, now, {other}).refusal, ClientError::unknown_producer) << other;
      EXPECT_EQ(table.open({1, 65'535}, 99, now, {other}).refusal, ClientError::unknown_producer) << other;
    }
    EXPECT_EQ(table.find(1)->identity.epoch, 0U);
    table.restore(table.list());  // as a restart does
  }
  EXPECT_EQ(table.open({1, 0}, 99, now, {ann}).producer.expected, 1U);
}

// As after a start with a file from before ids had owners, or with a producer that only the log names.
TEST_F(ProducersOfUsersTest, AnIdWithoutAKnownOwnerBelongsToItsFirstOpener) {
  table.found({{5, 0}, 0, 3});
  EXPECT_EQ(table.find(5)->owner, std::nullopt);
  EXPECT_EQ(table.open({5, 0}, 99, now, {ann}).refusal, ClientError::none);
  table.close(5, now);
  EXPECT_EQ(table.open({5, 0}, 99, now, {bob}).refusal, ClientError::unknown_producer);
}

class ProducersOfNobodyTest : public ProducersOfUsersTest {
 protected:
  static constexpr std::uint64_t nobody = broker::FairShare::anonymous;
  static ProducerSecret secret(int first) { return {std::byte(first), std::byte{1}}; }
  ClientError open_again(std::uint64_t id, std::optional<ProducerSecret> shown) {
    return table.open({id, 0}, 99, now, {nobody, shown, secret(99)}).refusal;
  }
};

TEST_F(ProducersOfNobodyTest, OnlyAClientWithTheSecretContinues) {
  const auto opened = table.open({}, 5, now, {nobody, {}, secret(1)});
  EXPECT_EQ(opened.producer.secret, secret(1));
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(open_again(5, {}), ClientError::unknown_producer);
    EXPECT_EQ(open_again(5, secret(2)), ClientError::unknown_producer);
    EXPECT_EQ(open_again(5, secret(1)), ClientError::none);
    EXPECT_EQ(table.find(5)->secret, secret(1)) << "it stays the same";
    table.restore(table.list());
  }
  EXPECT_EQ(table.open({5, 0}, 99, now, {ann, secret(1), {}}).refusal, ClientError::unknown_producer);
}

// Clients from before secrets existed: knowing the id is enough.
TEST_F(ProducersOfNobodyTest, AClientThatKeepsNoSecretNeedsNone) {
  EXPECT_EQ(table.open({}, 5, now, {nobody}).producer.secret, std::nullopt);
  EXPECT_EQ(table.open({5, 0}, 99, now, {nobody}).refusal, ClientError::none);
  EXPECT_EQ(open_again(5, {}), ClientError::none) << "and a newer one is given one now";
  EXPECT_EQ(table.open({5, 0}, 99, now, {nobody}).refusal, ClientError::unknown_producer);
}

// The broker was killed before it saved the secret.
TEST_F(ProducersOfNobodyTest, TheClientsSecretIsAcceptedIfTheBrokersWasLost) {
  table.found({{5, 0}, 0, 3});
  EXPECT_EQ(open_again(5, secret(1)), ClientError::none);
  EXPECT_EQ(open_again(5, secret(2)), ClientError::unknown_producer);
}

TEST_F(ProducersOfNobodyTest, UsersNeedNoSecret) {
  EXPECT_EQ(table.open({}, 5, now, {ann, {}, secret(1)}).producer.secret, std::nullopt);
  EXPECT_EQ(table.open({5, 0}, 99, now, {ann}).refusal, ClientError::none);
}

// Compares the table with a plain list of all stored messages.
TEST(ProducerTableModelTest, NoMessageIsStoredTwiceAfterAnyResend) {
  Random random;
  ProducerTable table(8, 7 * day_us);
  Timestamp now{0};
  std::map<std::uint64_t, std::uint64_t> stored;  // by producer id: the number of stored messages
  std::vector<ProducerIdentity> producers;
  std::set<std::uint64_t> open_now;  // ids that a channel has open
  std::uint64_t last_id = 0;
  for (int step = 0; step < 200'000; ++step) {
    now.us += static_cast<std::int64_t>(random.below(1000));
    const std::uint64_t choice = random.below(100);
    if (producers.empty() || choice < 1) {
      const std::uint64_t user = random.below(3);
      const auto opened = table.open({}, ++last_id, now, {user});
      if (opened.refusal != ClientError::none) {
        ASSERT_EQ(opened.refusal, ClientError::limit_reached);
        ASSERT_GE(open_now.size(), 7U);
        continue;
      }
      open_now.insert(last_id);
      producers.push_back(opened.producer.identity);
      if (producers.size() > 16) producers.erase(producers.begin());
      continue;
    }
    ProducerIdentity& producer = producers[random.below(producers.size())];
    if (choice < 3) {
      const ProducerIdentity wanted{producer.id,
                                    static_cast<std::uint16_t>(producer.epoch + random.below(2))};
      const auto opened = table.open(wanted, 0, now);
      if (opened.refusal != ClientError::none) continue;
      if (!open_now.insert(producer.id).second) table.close(producer.id, now);  // closes the older channel
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
      open_now.clear();
      continue;
    }
    if (choice < 9) {
      if (open_now.erase(producer.id) > 0) table.close(producer.id, now);
      continue;
    }
    for (const std::uint64_t id : open_now) ASSERT_NE(table.find(id), nullptr);
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

// --- Requests with an id: producers of one message. Its number names its offset. ---

/// Stores the message of a request at `offset`, and closes it.
void store_request(ProducerTable& table, std::uint64_t id, std::uint64_t offset, Timestamp now) {
  ASSERT_EQ(table.open({}, id, now, {.user = 7}).refusal, ClientError::none);
  table.stored({{id, 0}, broker::request_sequences_begin + offset, 1}, now);
  table.close(id, now);
}

TEST_F(ProducerTableTest, ARequestKeepsItsOffset) {
  ProducerTable many(20, 7 * day_us);
  store_request(many, 5, 17, now);
  ASSERT_NE(many.find(5), nullptr);
  EXPECT_TRUE(broker::is_of_request(many.find(5)->expected));
  EXPECT_EQ(many.find(5)->expected, broker::request_sequences_begin + 18);
  ProducerTable again(20, 7 * day_us);
  again.restore(many.list());
  EXPECT_EQ(again.find(5)->expected, broker::request_sequences_begin + 18);
  ProducerTable from_log(20, 7 * day_us);
  from_log.found({{5, 0}, broker::request_sequences_begin + 17, 1});
  EXPECT_EQ(from_log.find(5)->expected, broker::request_sequences_begin + 18);
}

TEST_F(ProducerTableTest, RequestsTakeAtMostHalfOfTheTable) {
  ProducerTable many(20, 7 * day_us);
  const auto session = many.open({}, 1000, now, {7}).producer.identity;
  many.stored({session, 0, 1}, now);
  many.close(session.id, now);
  for (std::uint64_t id = 1; id <= 50; ++id) store_request(many, id, id, now);
  EXPECT_NE(many.find(1000), nullptr) << "a session's producer that is closed stays";
  EXPECT_EQ(many.size(), 11U);
  for (std::uint64_t id = 1; id <= 50; ++id) EXPECT_EQ(many.find(id) != nullptr, id > 40) << id;
  ProducerTable again(20, 7 * day_us);
  again.restore(many.list());
  store_request(again, 51, 51, now);
  EXPECT_EQ(again.find(41), nullptr) << "the oldest goes, also after a start";
  EXPECT_NE(again.find(42), nullptr);
}

}  // namespace
}  // namespace lightq::test
