/// Tests of durable producers: when a topic's producers are written, which replies wait for that, and which
/// producers a start restores.
#include "delivery/producers/durable_producers.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "log/memory/write_behind_log.hpp"
#include "support/log_fixture.hpp"

namespace lightq::broker {
namespace {

using Kept = DurableProducers::Kept;

constexpr std::int64_t second_us = 1'000'000;

class DurableProducersTest : public test::LogFixture {
 protected:
  DurableProducersTest() {
    options.segment_bytes = limits::segment_bytes_min;
    open();
  }
  static DurableProducers make(Kept kept) {
    return {kept, ProducerTable(producer_file_entries_max, 7 * 86'400 * second_us)};
  }

  /// Appends a batch of this producer to the log and records it in the table.
  void send(ProducerIdentity producer, std::uint64_t begin, std::size_t count, std::size_t bytes = 10) {
    send_to(*log, producer, begin, count, bytes);
  }
  void send_to(log::Log& to, ProducerIdentity producer, std::uint64_t begin, std::size_t count,
               std::size_t bytes = 10) {
    auto batch = test::make_batch_of_producer(producer.id, producer.epoch, begin,
                                              std::vector<std::string>(count, std::string(bytes, 'm')));
    ASSERT_EQ(producers.admit({producer, begin, count}), Admission::store);
    ASSERT_EQ(to.append(batch, now).outcome, log::AppendOutcome::appended);
    producers.stored({producer, begin, count}, now);
    producers.appended(batch.size());
  }
  std::optional<EncodedProducers> take() { return producers.take_save(LogEnds::of(*log), now); }
  /// Takes the pending save and writes it. Returns false if there is none.
  bool save() {
    auto taken = take();
    if (!taken) return false;
    EXPECT_FALSE(take()) << "one at a time";
    EXPECT_TRUE(file.write(std::move(*taken)).ok());
    producers.saved(true);
    return true;
  }
  std::optional<ProducerSnapshot> on_disk() { return *ProducerFile(storage, directory).load(); }
  ProducerIdentity begin(std::uint64_t id) { return producers.open({}, id, now).producer.identity; }
  /// Restores the producers from the file and the log, as a start does. Returns the doubt, if any.
  std::optional<std::string> restart() {
    producers = make(Kept::on_disk);
    const auto found = on_disk();
    return found ? producers.recover(*found, *log)->doubt : std::nullopt;
  }
  std::uint64_t expected(std::uint64_t id) {
    const KnownProducer* const known = producers.find(id);
    return known == nullptr ? 0 : known->expected;
  }

  /// Damages the n-th batch. All batches must have one message of 10 bytes.
  void damage_batch(std::uint64_t n) {
    const std::uint64_t batch_bytes = batch_layout::header_bytes + record_bytes(10);
    storage.bytes_of(segment_path(0))[4096 + n * batch_bytes + batch_layout::header_bytes + 6] ^=
        std::byte{1};
  }

  DurableProducers producers = make(Kept::on_disk);
  ProducerFile file{storage, directory};
};

TEST_F(DurableProducersTest, TheFirstProducerIsAnsweredWhenThereIsAFile) {
  EXPECT_FALSE(producers.wants_save());
  EXPECT_FALSE(take()) << "nobody was here yet";
  begin(5);
  const auto change = producers.change();
  EXPECT_FALSE(producers.is_settled(change));
  EXPECT_TRUE(producers.wants_save());
  ASSERT_TRUE(save());
  EXPECT_TRUE(producers.is_settled(change));
  ASSERT_TRUE(on_disk());
  EXPECT_EQ(on_disk()->as_of, Offset{0});
  EXPECT_EQ(on_disk()->producers.size(), 1U);
  begin(6);
  EXPECT_TRUE(producers.is_settled(producers.change())) << "another id needs no file of its own";
}

TEST_F(DurableProducersTest, AStartRestoresTheOwnersOfTheProducers) {
  producers.open({}, 5, now, {.user = 42});
  ASSERT_TRUE(save());
  send({5, 0}, 0, 1);
  const ProducerSecret secret{std::byte{7}};
  producers.open({}, 6, now, {.user = FairShare::anonymous, .fresh = secret});
  send({6, 0}, 0, 1);
  ASSERT_EQ(restart(), std::nullopt);
  EXPECT_EQ(producers.open({5, 0}, 0, now, {.user = 43}).refusal, ClientError::unknown_producer);
  EXPECT_EQ(producers.open({5, 0}, 0, now, {.user = 42}).producer.expected, 1U);
  const ProducerTable::Opener shows{.user = FairShare::anonymous, .shown = secret};
  EXPECT_EQ(producers.open({6, 0}, 0, now, shows).producer.expected, 1U)
      << "the process was killed before it had saved the secret, and the client shows it";
  ASSERT_TRUE(log->flush().ok() && save());
  ASSERT_EQ(restart(), std::nullopt);
  EXPECT_EQ(producers.open({6, 0}, 0, now, {.user = FairShare::anonymous}).refusal,
            ClientError::unknown_producer);
  EXPECT_EQ(producers.open({6, 0}, 0, now, shows).refusal, ClientError::none);
}

TEST_F(DurableProducersTest, InMemoryNothingIsWaitedForAndNothingSaved) {
  producers = make(Kept::in_memory);
  const auto producer = begin(5);
  EXPECT_TRUE(producers.is_settled(producers.change()));
  send(producer, 0, 1);
  EXPECT_FALSE(producers.wants_save());
  EXPECT_FALSE(take());
  ASSERT_TRUE(log->flush().ok());
  EXPECT_FALSE(producers.take_last_save(LogEnds::of(*log)));
}

TEST_F(DurableProducersTest, ASnapshotIsWrittenOnlyWhenTheLogIsDurableUpToIt) {
  const auto producer = begin(5);
  ASSERT_TRUE(save());
  send(producer, 0, 3);
  now.us += second_us;
  EXPECT_FALSE(take()) << "a power cut would leave a table that knows more than the log";
  EXPECT_TRUE(producers.wants_save());
  send(producer, 3, 1);
  ASSERT_TRUE(log->flush().ok());
  send(producer, 4, 1);
  ASSERT_TRUE(save());
  EXPECT_EQ(on_disk()->as_of, Offset{3});
  EXPECT_EQ(on_disk()->producers.front().expected, 3U);
}

TEST_F(DurableProducersTest, MessagesInMemoryOnlyAreNotDurable) {
  log::WriteBehindLog behind({.ring = {.capacity_bytes = limits::ring_bytes_min}}, std::move(log));
  const auto take_behind = [&] { return producers.take_save(LogEnds::of(behind), now); };
  const auto producer = begin(5);
  ASSERT_TRUE(take_behind());
  producers.saved(true);
  send_to(behind, producer, 0, 2);
  now.us += second_us;
  EXPECT_FALSE(take_behind());
  ASSERT_TRUE(behind.flush().ok());
  EXPECT_TRUE(take_behind());
}

TEST_F(DurableProducersTest, ATakeoverIsConfirmedWhenItIsOnDiskAndHastensASync) {
  const auto older = begin(5);
  ASSERT_TRUE(save());
  send(older, 0, 2);
  EXPECT_EQ(producers.open({5, 1}, 0, now).refusal, ClientError::none);
  const auto change = producers.change();
  EXPECT_FALSE(producers.is_settled(change));
  EXPECT_FALSE(take());
  EXPECT_TRUE(producers.wants_flush(LogEnds::of(*log)));
  ASSERT_TRUE(log->flush().ok());
  EXPECT_FALSE(producers.wants_flush(LogEnds::of(*log)));
  ASSERT_TRUE(save()) << "at once: somebody waits";
  EXPECT_TRUE(producers.is_settled(change));
  EXPECT_EQ(on_disk()->producers.front().identity.epoch, 1);
}

// A producer that opens again with its current epoch also waits while an earlier takeover is not on disk.
TEST_F(DurableProducersTest, AReturningProducerWaitsForTheEarlierTakeover) {
  begin(5);
  ASSERT_TRUE(save());
  producers.open({5, 1}, 0, now);
  auto taken = take();
  ASSERT_TRUE(taken);
  producers.open({5, 2}, 0, now);
  ASSERT_TRUE(file.write(std::move(*taken)).ok());
  producers.saved(true);
  producers.open({5, 2}, 0, now);
  EXPECT_FALSE(producers.is_settled(producers.change())) << "that file says epoch 1";
  ASSERT_TRUE(save());
  EXPECT_TRUE(producers.is_settled(producers.change()));
  EXPECT_EQ(producers.open({5, 1}, 0, now).refusal, ClientError::fenced);
}

// A file that a killed process wrote may not be on disk. The next process writes one before its first reply.
TEST_F(DurableProducersTest, AfterAStartTheFirstAnswerWaitsForAFileOfThisProcess) {
  begin(5);
  ASSERT_TRUE(save());
  ASSERT_EQ(restart(), std::nullopt);
  EXPECT_FALSE(take());
  producers.open({5, 0}, 0, now);
  EXPECT_FALSE(producers.is_settled(producers.change()));
  ASSERT_TRUE(save());
  EXPECT_TRUE(producers.is_settled(producers.change()));
}

TEST_F(DurableProducersTest, ChangesAreWrittenAtMostOnceASecond) {
  const auto producer = begin(5);
  ASSERT_TRUE(save());
  for (std::uint64_t i = 0; i < 30; ++i) {
    send(producer, i, 1);
    ASSERT_TRUE(log->flush().ok());
    now.us += second_us / 10;
    EXPECT_EQ(save(), i % 10 == 9) << i;
  }
  EXPECT_FALSE(producers.wants_save());
  now.us += 10 * second_us;
  EXPECT_FALSE(take()) << "nothing has changed";
  send(producer, 30, 1);
  ASSERT_TRUE(log->flush().ok());
  now.us -= 100 * second_us;
  EXPECT_TRUE(save()) << "a clock that is set back stops nothing";
}

TEST_F(DurableProducersTest, OtherProducersMessagesAreAlsoWrittenBehind) {
  begin(5);
  ASSERT_TRUE(save());
  ASSERT_EQ(append({"plain"}), log::AppendOutcome::appended);
  producers.appended(32 * limits::MiB - 1);
  now.us += 10 * second_us;
  ASSERT_TRUE(log->flush().ok());
  EXPECT_FALSE(take());
  producers.appended(1);
  EXPECT_TRUE(producers.wants_save());
  EXPECT_TRUE(save());
  EXPECT_EQ(on_disk()->as_of, Offset{1});
  EXPECT_FALSE(producers.wants_save());
}

TEST_F(DurableProducersTest, ATopicWithoutSuchProducersHasNoFile) {
  ASSERT_EQ(append({"plain"}), log::AppendOutcome::appended);
  producers.appended(100 * limits::MiB);
  now.us += 10 * second_us;
  ASSERT_TRUE(log->flush().ok());
  EXPECT_FALSE(producers.wants_save());
  EXPECT_FALSE(take());
  EXPECT_FALSE(producers.take_last_save(LogEnds::of(*log)));
}

TEST_F(DurableProducersTest, AFailedSaveSettlesNothingAndIsTriedAgainASecondLater) {
  begin(5);
  ASSERT_TRUE(take());
  producers.saved(false);
  EXPECT_FALSE(producers.is_settled(producers.change()));
  EXPECT_TRUE(producers.wants_save());
  EXPECT_FALSE(take());
  now.us += second_us;
  EXPECT_TRUE(save());
  EXPECT_TRUE(producers.is_settled(producers.change()));
  EXPECT_FALSE(producers.wants_save());
}

TEST_F(DurableProducersTest, AfterACleanStopNothingIsRead) {
  const auto producer = begin(5);
  ASSERT_TRUE(save());
  send(producer, 0, 4);
  EXPECT_FALSE(producers.take_last_save(LogEnds::of(*log))) << "not before the log is durable";
  ASSERT_TRUE(log->close().ok());
  auto last = producers.take_last_save(LogEnds::of(*log));
  ASSERT_TRUE(last && file.write(std::move(*last)).ok());
  producers.saved(true);
  EXPECT_FALSE(producers.take_last_save(LogEnds::of(*log))) << "said already";
  open();
  storage.on_call = [](test::FaultyStorage::Call call, const std::string&) {
    EXPECT_NE(call, test::FaultyStorage::Call::map);
    return test::FaultyStorage::Fault{};
  };
  EXPECT_EQ(restart(), std::nullopt);
  EXPECT_EQ(expected(5), 4U);
  EXPECT_FALSE(producers.take_last_save(LogEnds::of(*log)));
}

TEST_F(DurableProducersTest, MessagesAfterTheFileAreLearnedFromTheLog) {
  const auto one = begin(5);
  send(one, 0, 2);
  ASSERT_TRUE(log->flush().ok() && save());
  producers.open({5, 1}, 0, now);
  send({5, 1}, 2, 3);
  const auto other = begin(6);
  send(other, 0, 1);
  ASSERT_EQ(append({"plain"}), log::AppendOutcome::appended);
  begin(7);
  open();
  ASSERT_EQ(restart(), std::nullopt);
  EXPECT_EQ(producers.find(5)->identity.epoch, 1);
  EXPECT_EQ(expected(5), 5U);
  EXPECT_EQ(expected(6), 1U);
  EXPECT_EQ(producers.find(7), nullptr) << "it has sent nothing: it is told that it is unknown";
  EXPECT_EQ(producers.table().size(), 2U) << "plain messages are nobody's";
  EXPECT_TRUE(producers.wants_save());
}

TEST_F(DurableProducersTest, AFileThatIsAheadOfTheLogIsIgnored) {
  const auto producer = begin(5);
  send(producer, 0, 2);
  ASSERT_TRUE(file.write(ProducerFile::encode({{9}, producers.table().list()})).ok());
  const auto doubt = restart();
  ASSERT_TRUE(doubt);
  EXPECT_NE(doubt->find("the log ended at 9, but the log ends at 2"), std::string::npos) << *doubt;
  EXPECT_EQ(producers.table().size(), 0U);
}

TEST_F(DurableProducersTest, AProducerWithUnreadDroppedMessagesIsUnknown) {
  for (const std::uint64_t id : {5, 6, 7}) begin(id);
  ASSERT_TRUE(save());
  send({5, 0}, 0, 2, 20'000);
  send({6, 0}, 0, 1, 30'000);  // in the next segment
  send({5, 0}, 2, 1);
  ASSERT_TRUE(log->flush().ok());
  ASSERT_TRUE(log->drop_first({2}, 0));
  const auto doubt = restart();
  ASSERT_TRUE(doubt);
  EXPECT_NE(doubt->find("messages from 0 on cannot be read any more"), std::string::npos) << *doubt;
  EXPECT_EQ(producers.find(5), nullptr) << "they may have been lost before they were dropped";
  EXPECT_EQ(expected(6), 1U);
  EXPECT_EQ(producers.find(7), nullptr);
}

TEST_F(DurableProducersTest, AfterDamageOnlyLaterProducersAreKnown) {
  const auto one = begin(5);
  const auto other = begin(6);
  send(one, 0, 1);
  ASSERT_TRUE(log->flush().ok() && save());
  send(one, 1, 1);
  send(other, 0, 1);
  ASSERT_TRUE(log->flush().ok());
  damage_batch(1);
  open();
  const auto doubt = restart();
  ASSERT_TRUE(doubt);
  EXPECT_NE(doubt->find("messages from 1 on cannot be read: "), std::string::npos) << *doubt;
  EXPECT_EQ(producers.find(5), nullptr) << "whether its message 1 was stored is not known";
  EXPECT_EQ(expected(6), 1U);
}

// Messages that were lost in the middle must not count as stored because later ones are there.
TEST_F(DurableProducersTest, AProducerWithDamagedMessagesIsUnknownEvenIfLaterOnesAreSound) {
  for (const std::uint64_t id : {5, 6, 7, 8}) begin(id);
  send({7, 0}, 0, 1);
  ASSERT_TRUE(log->flush().ok() && save());
  send({5, 0}, 0, 1);  // damaged below
  send({5, 0}, 1, 1);
  send({5, 0}, 2, 1);
  send({6, 0}, 0, 1);
  send({7, 0}, 1, 1);
  ASSERT_TRUE(log->flush().ok());
  damage_batch(1);
  open();
  ASSERT_TRUE(restart());
  EXPECT_EQ(producers.find(5), nullptr);
  EXPECT_EQ(expected(6), 1U) << "it begins behind the damage";
  EXPECT_EQ(expected(7), 2U) << "its next message after those before the damage is the first behind it";
  EXPECT_EQ(producers.find(8), nullptr) << "it may have sent what is damaged";
}

TEST_F(DurableProducersTest, ATableThatDoesNotMatchTheLogIsIgnored) {
  const auto one = begin(5);
  const auto other = begin(6);
  send(one, 0, 2);
  send(other, 0, 1);
  send(one, 2, 1);
  ASSERT_TRUE(log->flush().ok());
  const auto restart_with = [&](std::uint64_t as_of, std::vector<KnownProducer> known) {
    EXPECT_TRUE(file.write(ProducerFile::encode({{as_of}, std::move(known)})).ok());
    return restart();
  };
  EXPECT_EQ(restart_with(2, {{{5, 0}, 2, now}, {{6, 0}, 0, now}}), std::nullopt);
  EXPECT_EQ(expected(5), 3U);
  EXPECT_EQ(expected(6), 1U);
  EXPECT_TRUE(restart_with(2, {{{5, 0}, 7, now}, {{9, 0}, 1, now}})) << "5 has not sent so much";
  EXPECT_EQ(producers.find(5), nullptr);
  EXPECT_EQ(producers.find(9), nullptr);
  EXPECT_EQ(producers.find(6), nullptr) << "what else is missing is not known";
  EXPECT_TRUE(restart_with(2, {{{5, 3}, 2, now}})) << "it was fenced then";
  EXPECT_EQ(producers.find(5), nullptr);
  EXPECT_TRUE(restart_with(1, {{{9, 0}, 1, now}})) << "no batch begins there";
  EXPECT_EQ(producers.find(9), nullptr);
}

// The log could not tell which producers are known. Both answers could be wrong.
TEST_F(DurableProducersTest, AnUnavailableLogForgetsNoProducer) {
  const ProducerIdentity producer = begin(5);
  ASSERT_TRUE(log->flush().ok());
  ASSERT_TRUE(save());
  send(producer, 0, 3);
  ASSERT_TRUE(log->flush().ok());
  for (const int error : {EMFILE, ENFILE, ENOMEM, EACCES, EIO}) {
    open();
    storage.on_call = [=](test::FaultyStorage::Call call, const std::string& path) {
      const bool fails = call == test::FaultyStorage::Call::open && path.ends_with(".seg");
      return test::FaultyStorage::Fault{fails ? error : 0, 0};
    };
    producers = make(Kept::on_disk);
    const auto found = on_disk();
    ASSERT_TRUE(found);
    const auto recovered = producers.recover(*found, *log);
    ASSERT_FALSE(recovered.ok());
    EXPECT_EQ(recovered.error().system_error, error);
    storage.on_call = nullptr;
    EXPECT_EQ(restart(), std::nullopt);
    EXPECT_EQ(expected(5), 3U);
  }
}

TEST_F(DurableProducersTest, TheBrokersOwnProducersMayLeaveOutNumbersOverARestart) {
  constexpr std::uint64_t base = own_sequences_begin;
  const ProducerIdentity own{70, 0};
  ASSERT_EQ(producers.open(own, 1, now, {.user = ProducerTable::brokers_own}).refusal, ClientError::none);
  ASSERT_TRUE(save());
  send(own, base + 1, 2);
  send(own, base + 7, 1);
  ASSERT_TRUE(log->flush().ok());
  EXPECT_EQ(restart(), std::nullopt) << "numbers that are left out are no reason for doubt";
  ASSERT_NE(producers.find(70), nullptr);
  EXPECT_EQ(producers.find(70)->expected, base + 8);
  EXPECT_EQ(producers.find(70)->owner, ProducerTable::brokers_own);
}

TEST_F(DurableProducersTest, ARequestWithAnIdIsKnownByItsMessage) {
  constexpr std::uint64_t base = request_sequences_begin;
  const auto store = [&](std::uint64_t id) {
    const std::uint64_t sequence = base + log->next_offset().value;
    auto batch = test::make_batch_of_producer(id, 0, sequence, {std::string(10, 'm')});
    ASSERT_EQ(log->append(batch, now).outcome, log::AppendOutcome::appended);
    producers.stored({{id, 0}, sequence, 1}, now);
    producers.appended(batch.size());
  };
  begin(70);
  store(70);
  begin(71);  // the file has it without a message
  ASSERT_TRUE(log->flush().ok());
  ASSERT_TRUE(save());
  store(71);
  begin(72);
  store(72);
  ASSERT_TRUE(log->flush().ok());
  EXPECT_EQ(restart(), std::nullopt) << "its number is no reason for doubt";
  EXPECT_EQ(expected(70), base + 1);
  EXPECT_EQ(expected(71), base + 2);
  EXPECT_EQ(expected(72), base + 3);
  damage_batch(1);
  open();
  ASSERT_NE(restart(), std::nullopt);
  EXPECT_EQ(expected(70), base + 1) << "it would be stored twice";
  EXPECT_EQ(expected(71), 0U) << "it is lost, and is stored again";
  EXPECT_EQ(expected(72), base + 3);
}

TEST_F(DurableProducersTest, AnOwnProducerWithAGapBehindADamagedRangeIsForgotten) {
  constexpr std::uint64_t base = own_sequences_begin;
  const ProducerIdentity own{70, 0};
  ASSERT_EQ(producers.open(own, 1, now, {.user = ProducerTable::brokers_own}).refusal, ClientError::none);
  ASSERT_TRUE(save());
  send(own, base + 1, 1);
  send(own, base + 2, 1);  // damaged below
  send(own, base + 3, 1);
  ASSERT_TRUE(log->flush().ok());
  damage_batch(1);
  open();
  ASSERT_NE(restart(), std::nullopt);
  EXPECT_EQ(producers.find(70), nullptr) << "its letter in the damaged range has to be sent again";
}

TEST_F(DurableProducersTest, AnOwnProducerWithoutMessagesBehindADamagedRangeStaysKnown) {
  constexpr std::uint64_t base = own_sequences_begin;
  const ProducerIdentity own{70, 0};
  ASSERT_EQ(producers.open(own, 1, now, {.user = ProducerTable::brokers_own}).refusal, ClientError::none);
  begin(5);
  ASSERT_TRUE(save());
  send(own, base + 1, 1);
  send(own, base + 2, 1);  // damaged below
  send({5, 0}, 0, 1);
  ASSERT_TRUE(log->flush().ok());
  damage_batch(1);
  open();
  ASSERT_NE(restart(), std::nullopt);
  EXPECT_EQ(producers.admit({own, base + 1, 1}), Admission::repeat) << "it would be published twice";
  EXPECT_EQ(producers.admit({own, base + 2, 1}), Admission::store) << "it is lost, and is sent again";
}

TEST_F(DurableProducersTest, AnOwnProducerIsForgottenIfTheTableDoesNotBelongToTheLog) {
  constexpr std::uint64_t base = own_sequences_begin;
  const ProducerIdentity own{70, 0};
  ASSERT_EQ(producers.open(own, 1, now, {.user = ProducerTable::brokers_own}).refusal, ClientError::none);
  send(own, base + 1, 1);
  ASSERT_TRUE(log->flush().ok());
  now.us += second_us;
  ASSERT_TRUE(save());
  const auto saved = on_disk();
  ASSERT_TRUE(saved && saved->as_of == Offset{1});
  ProducerSnapshot ahead = *saved;
  ahead.as_of = Offset{2};
  producers = make(Kept::on_disk);
  ASSERT_TRUE(producers.recover(ahead, *log)->doubt);
  EXPECT_EQ(producers.find(70), nullptr);
}

}  // namespace
}  // namespace lightq::broker
