/// Tests of a session producer in trouble: connections that end, refusals, brokers that forget, failed joins.
#include <gmock/gmock.h>

#include <algorithm>

#include <lightq/producer.hpp>

#include "session_fixture.hpp"

#include "support/planted.hpp"

namespace lightq::test {
namespace {

using session::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Payloads = std::vector<std::string>;

class SessionProducerTrouble : public SessionProducerTest {
 protected:
  SessionProducerTrouble() { options.eager_batches = 100; }

  /// Sends each text in a batch of its own.
  std::vector<TakenBatch> send(Producer& producer, const Payloads& texts) {
    std::vector<TakenBatch> batches;
    for (const std::string& text : texts) {
      EXPECT_TRUE(producer.send(text).ok());
      batches.push_back(next_batch(producer));
    }
    return batches;
  }
};

TEST_F(SessionProducerTrouble, SendsTheSameBatchesAgainOnTheNextConnection) {
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a", "b", "c"});
  confirm(1);
  ASSERT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
  opened.expected = 1;
  EXPECT_EQ(connect(producer).producer, opened.producer);
  EXPECT_EQ(joins, 1) << "the address was good";
  EXPECT_EQ(next_batch(producer).bytes, first[1].bytes);
  EXPECT_EQ(next_batch(producer).bytes, first[2].bytes);
  EXPECT_TRUE(is_quiet(producer));
  confirm(3);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 3; }));
  EXPECT_EQ(producer.stats().opens, 2U);
}

TEST_F(SessionProducerTrouble, ShowsTheSecretThatItWasGivenUntilTheBrokerForgetsTheProducer) {
  opened.secret.emplace().fill(std::byte{7});
  options.resend_in_doubt = true;
  Producer producer = make();
  EXPECT_EQ(connect(producer).secret, std::nullopt);
  EXPECT_EQ(connect(producer).secret, opened.secret);
  EXPECT_EQ(producer.opened()->secret, opened.secret) << "for the process that goes on where this one ends";
  EXPECT_EQ(greet(producer).codecs.bits() >> 31, 1U) << "it says that it keeps secrets";
  const auto asked = next_frame(producer);
  EXPECT_EQ(asked.as<session::ProduceOpen>().secret, opened.secret);
  peer.say(session::ErrorAnswer{Code::unknown_producer, "it does not know"}, 0, asked.header.request);
  opened.producer.id = 4712;
  EXPECT_EQ(connect(producer).secret, std::nullopt) << "it is somebody new";
}

TEST_F(SessionProducerTrouble, ContinuesWithAnIdentityAndItsSecret) {
  options.identity = {producer_id, 3};
  options.identity_secret.emplace().fill(std::byte{9});
  opened.producer = options.identity;
  Producer producer = make();
  const session::ProduceOpen asked = connect(producer);
  EXPECT_EQ(asked.producer, options.identity);
  EXPECT_EQ(asked.secret, options.identity_secret);
}

TEST_F(SessionProducerTrouble, TakesReceivedMessagesForConfirmedAtLevelReceived) {
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a", "b", "c"});
  opened.expected = 2;
  connect(producer);
  EXPECT_EQ(next_batch(producer).bytes, first[2].bytes);
  EXPECT_TRUE(is_quiet(producer));
  EXPECT_THAT(told(), ElementsAre("confirmed [0,1)", "confirmed [1,2)"));
}

TEST_F(SessionProducerTrouble, KeepsStoredMessagesAtLevelFlushedUntilTheBrokerConfirmsThem) {
  opened.level = ConfirmLevel::flushed;
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a", "b", "c"});
  confirm(2, 0);
  opened.expected = 2;
  connect(producer);
  EXPECT_EQ(next_batch(producer).bytes, first[2].bytes);
  EXPECT_TRUE(is_quiet(producer));
  EXPECT_THAT(told(), IsEmpty());
  opened.expected = 1;  // a crash of the broker has lost the second batch
  connect(producer);
  EXPECT_EQ(next_batch(producer).bytes, first[1].bytes);
  EXPECT_EQ(next_batch(producer).bytes, first[2].bytes);
  EXPECT_EQ(producer.stats().lost, 0U) << "it was not confirmed";
  opened.expected = 3;
  connect(producer);
  confirm(3, 3);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 3; }));
  EXPECT_TRUE(is_quiet(producer));
}

TEST_F(SessionProducerTrouble, FinishesWithABrokerThatIsCutOffAfterEachBatch) {
  opened.level = ConfirmLevel::flushed;
  Producer producer = make();
  constexpr std::uint64_t batches = 12;
  connect(producer);
  send(producer, Payloads(batches, "x"));
  for (std::uint64_t stored = 0; stored < batches; ++stored) {
    opened.expected = stored;
    connect(producer);
    EXPECT_EQ(next_batch(producer).sequence, stored);
    peer.close();
    EXPECT_TRUE(producer.poll(Timeout(0)).ok());
    if (stored > 0) {
      EXPECT_LE(producer.next_timer(), options.clock() + Timeout(50)) << "the last connection was of use";
    }
  }
  opened.expected = batches;
  connect(producer);
  confirm(batches, batches);
  EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == batches; }));
  EXPECT_EQ(producer.stats().opens, batches + 2);
}

TEST_F(SessionProducerTrouble, WaitsEverLongerForABrokerThatStoresNothing) {
  opened.level = ConfirmLevel::flushed;
  Producer producer = make();
  connect(producer);
  send(producer, {"a"});
  for (int cut = 0; cut < 8; ++cut) connect(producer);
  peer.close();
  EXPECT_TRUE(producer.poll(Timeout(0)).ok());
  EXPECT_GT(producer.next_timer(), options.clock() + Timeout(500));
}

TEST_F(SessionProducerTrouble, ContinuesAtTheExpectedNumberIfConfirmedMessagesWereLost) {
  Producer producer = make();
  connect(producer);
  send(producer, {"a", "b", "c"});
  confirm(2);
  ASSERT_TRUE(until(producer, [&] { return producer.confirmed() == 2; }));
  opened.expected = 0;
  connect(producer);
  const TakenBatch again = next_batch(producer);
  EXPECT_EQ(again.payloads, Payloads{"c"});
  EXPECT_EQ(again.sequence, 0U);
  EXPECT_EQ(producer.stats().lost, 2U);
}

TEST_F(SessionProducerTrouble, JoinsAgainWhenTheAddressRefuses) {
  Producer producer = make();
  connect(producer);
  listener.reopen();
  connect(producer);
  EXPECT_EQ(joins, 2);
}

TEST_F(SessionProducerTrouble, JoinsAgainWhenTheTicketIsRefused) {
  Producer producer = make();
  accept(producer);
  const auto hello = next_frame(producer);
  peer.say(session::ErrorAnswer{Code::unauthorized_access, "an old ticket"}, 0, hello.header.request);
  ASSERT_TRUE(until(producer, [&] { return peer.ended(); }));
  EXPECT_EQ(producer.last_error().code, ErrorCode::unauthorized_access);
  EXPECT_THAT(producer.last_error().message, HasSubstr("an old ticket"));
  EXPECT_EQ(greet(producer).ticket, std::string("id.") + planted::ticket_secret + "2");
}

TEST_F(SessionProducerTrouble, RetriesAJoinUnlessTheErrorIsPermanent) {
  Producer producer = make();
  join_error = Error{ErrorCode::timeout, "nobody answers"};
  ASSERT_TRUE(producer.send("a").ok());
  for (int tries = 0; tries < 5; ++tries) {
    EXPECT_TRUE(producer.poll(Timeout(0)).ok());
    clock.advance(Timeout(2000));
  }
  EXPECT_GE(joins, 5);
  EXPECT_THAT(producer.wait_open(Timeout(0)).error().message, HasSubstr("nobody answers"));
  join_error = Error{ErrorCode::unauthorized_access, "who are you"};
  clock.advance(Timeout(2000));
  EXPECT_FALSE(producer.poll(Timeout(0)).ok());
  EXPECT_EQ(producer.state(), SessionState::failed);
  EXPECT_THAT(told(), ElementsAre("refused [0,1)"));
  EXPECT_EQ(producer.send("b").error().code, ErrorCode::unauthorized_access);
  EXPECT_EQ(producer.unconfirmed(), 0U);
}

TEST_F(SessionProducerTrouble, WaitsEverLongerBetweenAttempts) {
  Producer producer = make();
  join_error = Error{ErrorCode::timeout, "nobody answers"};
  Timeout most(50);
  for (int tries = 0; tries < 12; ++tries) {
    const SessionTime before = options.clock();
    EXPECT_TRUE(producer.poll(Timeout(0)).ok());
    const auto wait = producer.next_timer() - before;
    EXPECT_GE(wait, most / 2);
    EXPECT_LE(wait, most + std::chrono::seconds(5)) << "5 s for a slow machine";
    most = std::min(most * 2, Timeout(2000));
    clock.advance(Timeout(2000));
  }
  EXPECT_EQ(joins, 12);
}

TEST_F(SessionProducerTrouble, GivesUpABrokerThatDoesNotAnswer) {
  Producer producer = make();
  accept(producer);
  next_frame(producer);  // the hello
  clock.advance(Timeout(4000));
  EXPECT_FALSE(until(producer, [&] { return peer.ended(); }));
  clock.advance(Timeout(1000));
  EXPECT_TRUE(until(producer, [&] { return peer.ended(); }));
  connect(producer);
  EXPECT_EQ(joins, 2);
}

TEST_F(SessionProducerTrouble, ReconnectsAfterAGoodbye) {
  Producer producer = make();
  connect(producer);
  peer.say(session::Goodbye{Code::shutting_down, "until later"}, 0, 0);
  ASSERT_TRUE(until(producer, [&] { return peer.ended(); }));
  EXPECT_EQ(producer.last_error().code, ErrorCode::shutting_down);
  connect(producer);
}

TEST_F(SessionProducerTrouble, ReportsTheMessagesInDoubtWhenTheBrokerForgotIt) {
  Producer producer = make();
  connect(producer);
  send(producer, {"a", "b", "c"});
  confirm(1);
  ASSERT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
  peer.close();
  ASSERT_TRUE(producer.send("never sent").ok());
  const auto open = asked(producer);
  peer.say(session::ErrorAnswer{Code::unknown_producer, ""}, 0, open.header.request);
  ASSERT_TRUE(until(producer, [&] { return producer.state() == SessionState::in_doubt; }));
  EXPECT_EQ(producer.in_doubt(), 2U);
  EXPECT_THAT(producer.send("d").error().message, HasSubstr("2 messages may be stored or not"));
  EXPECT_FALSE(producer.flush(Timeout(0)).ok());
  EXPECT_EQ(producer.next_timer(), session_never);
  EXPECT_THAT(told(), ElementsAre("confirmed [0,1)"));

  producer.resolve(false);
  EXPECT_THAT(told(), ElementsAre("confirmed [0,1)", "unknown [1,2)", "unknown [2,3)"));
  opened.producer.id = 4712;
  EXPECT_EQ(connect(producer).producer.id, 0U);
  const TakenBatch next = next_batch(producer);
  EXPECT_EQ(next.payloads, Payloads{"never sent"});
  EXPECT_EQ(next.sequence, 0U);
  EXPECT_EQ(next.producer, opened.producer);
  confirm(1);
  EXPECT_TRUE(until(producer, [&] { return producer.unconfirmed() == 0; }));
  const Result<void> flushed = producer.flush(Timeout(0));
  ASSERT_FALSE(flushed.ok());
  EXPECT_THAT(flushed.error().message, HasSubstr("2 messages were not confirmed"));
  EXPECT_TRUE(producer.flush(Timeout(0)).ok()) << "told once";
}

TEST_F(SessionProducerTrouble, ResendsMessagesInDoubtOnRequest) {
  for (const bool by_option : {false, true}) {
    options.resend_in_doubt = by_option;
    opened.producer.id = producer_id;
    reports.clear();
    Producer producer = make();
    connect(producer);
    send(producer, {"a", "b"});
    const auto open = asked(producer);
    peer.say(session::ErrorAnswer{Code::unknown_producer, ""}, 0, open.header.request);
    ASSERT_TRUE(until(producer, [&] { return peer.ended(); }));
    if (!by_option) producer.resolve(true);
    opened.producer.id = 4712;
    EXPECT_EQ(connect(producer).producer.id, 0U);
    EXPECT_EQ(next_batch(producer).payloads, Payloads{"a"});
    const TakenBatch last = next_batch(producer);
    EXPECT_EQ(last.payloads, Payloads{"b"});
    EXPECT_EQ(last.sequence, 1U);
    confirm(2);
    EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 2; }));
  }
}

TEST_F(SessionProducerTrouble, GetsANewIdSilentlyIfNothingIsInDoubt) {
  Producer producer = make();
  connect(producer);
  peer.close();
  ASSERT_TRUE(producer.send("a").ok());
  const auto open = asked(producer);
  peer.say(session::ErrorAnswer{Code::unknown_producer, ""}, 0, open.header.request);
  ASSERT_TRUE(until(producer, [&] { return peer.ended(); }));
  opened.producer.id = 4712;
  EXPECT_EQ(connect(producer).producer.id, 0U);
  EXPECT_EQ(next_batch(producer).producer, opened.producer);
}

TEST_F(SessionProducerTrouble, IsInDoubtWhenTheBrokerExpectsTheMiddleOfABatch) {
  options.eager_batches = 1;
  Producer producer = make();
  ASSERT_TRUE(producer.send("a").ok());
  ASSERT_TRUE(producer.send("b").ok());
  connect(producer);
  EXPECT_EQ(next_batch(producer).payloads.size(), 2U);
  const auto open = asked(producer);
  opened.expected = 1;
  peer.say(opened, channel, open.header.request);
  ASSERT_TRUE(until(producer, [&] { return producer.state() == SessionState::in_doubt; }));
  EXPECT_EQ(producer.in_doubt(), 2U);
}

TEST_F(SessionProducerTrouble, EndsWhenAnotherProcessOpensItsId) {
  Producer producer = make();
  connect(producer);
  send(producer, {"a"});
  peer.say(session::ErrorAnswer{Code::fenced, "epoch 5 is here"}, channel, 0);
  ASSERT_TRUE(until(producer, [&] { return producer.state() == SessionState::failed; }));
  EXPECT_EQ(producer.send("b").error().code, ErrorCode::in_use);
  EXPECT_THAT(producer.flush(Timeout(0)).error().message, HasSubstr("epoch 5 is here"));
  EXPECT_THAT(told(), ElementsAre("unknown [0,1)"));
  EXPECT_EQ(producer.fd(), -1);
}

TEST_F(SessionProducerTrouble, EndsAndReportsAllMessagesAfterAPermanentError) {
  for (const Code code :
       {Code::unsupported_version, Code::topic_not_found, Code::topic_deleted, Code::fenced}) {
    reports.clear();
    Producer producer = make();
    ASSERT_TRUE(producer.send("a").ok());
    const auto open = asked(producer);
    peer.say(session::ErrorAnswer{code, ""}, 0, open.header.request);
    ASSERT_TRUE(until(producer, [&] { return producer.state() == SessionState::failed; }));
    EXPECT_THAT(told(), ElementsAre("refused [0,1)"));
    EXPECT_EQ(producer.unconfirmed(), 0U);
  }
}

TEST_F(SessionProducerTrouble, SendsARefusedBatchAgainLater) {
  for (const Code code : {Code::limit_reached, Code::no_space, Code::io_error, Code::shutting_down}) {
    Producer producer = make();
    connect(producer);
    const auto first = send(producer, {"a", "b", "c"});
    refuse(first[1], code, 1);
    ASSERT_TRUE(until(producer, [&] { return producer.confirmed() == 1; }));
    EXPECT_GT(producer.next_timer(), options.clock() - Timeout(5000));
    EXPECT_LE(producer.next_timer(), options.clock() + Timeout(50));
    clock.advance(Timeout(50));
    EXPECT_EQ(next_batch(producer).bytes, first[1].bytes);
    EXPECT_EQ(next_batch(producer).bytes, first[2].bytes);
    confirm(3);
    EXPECT_TRUE(until(producer, [&] { return producer.confirmed() == 3; }));
  }
}

TEST_F(SessionProducerTrouble, GivesRefusedMessagesUpOnRequest) {
  options.retry_refused = false;
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a", "b", "c"});
  refuse(first[1], Code::limit_reached, 1);
  const TakenBatch again = next_batch(producer);
  EXPECT_EQ(again.payloads, Payloads{"c"});
  EXPECT_EQ(again.sequence, 1U);
  EXPECT_THAT(told(), ElementsAre("refused [1,2)", "confirmed [0,1)"));
  EXPECT_THAT(reports.at(0).error, HasSubstr("limit_reached: so it is"));
}

TEST_F(SessionProducerTrouble, GivesUpTooLargeMessagesAndRenumbersTheOthers) {
  Producer producer = make();
  connect(producer);
  std::vector<Fate> fates;
  ASSERT_TRUE(producer.send("a").ok());
  next_batch(producer);
  ASSERT_TRUE(producer
                  .send("b",
                        [&](Fate fate, const Error* error) {
                          fates.push_back(fate);
                          EXPECT_EQ(error->code, ErrorCode::too_large);
                        })
                  .ok());
  const TakenBatch large = next_batch(producer);
  send(producer, {"c", "d"});
  confirm(1);
  refuse(large, Code::too_large, 1);
  const TakenBatch third = next_batch(producer);
  const TakenBatch fourth = next_batch(producer);
  EXPECT_EQ(third.sequence, 1U);
  EXPECT_EQ(third.payloads, Payloads{"c"});
  EXPECT_EQ(fourth.sequence, 2U);
  confirm(3);
  ASSERT_TRUE(until(producer, [&] { return producer.unconfirmed() == 0; }));
  EXPECT_THAT(told(), ElementsAre("confirmed [0,1)", "refused [1,2)", "confirmed [2,3)", "confirmed [3,4)"));
  EXPECT_THAT(fates, ElementsAre(Fate::refused));
  EXPECT_EQ(producer.flush(Timeout(0)).error().code, ErrorCode::too_large);
}

TEST_F(SessionProducerTrouble, DoesNotSendMessagesThatANewBrokerRefuses) {
  Producer producer = make();
  connect(producer);
  send(producer, {"a", std::string(200'000, 'x'), "c"});
  opened.batch_bytes_max = 100'000;
  connect(producer);
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"a"});
  const TakenBatch third = next_batch(producer);
  EXPECT_EQ(third.payloads, Payloads{"c"});
  EXPECT_EQ(third.sequence, 1U);
  EXPECT_THAT(told(), ElementsAre("refused [1,2)"));
}

TEST_F(SessionProducerTrouble, ResendsADamagedBatchImmediatelyAndThenWithBackoff) {
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a"});
  refuse(first[0], Code::corrupt, 0);
  EXPECT_EQ(next_batch(producer).bytes, first[0].bytes);
  refuse(first[0], Code::corrupt, 0);
  EXPECT_TRUE(until(producer, [&] { return producer.next_timer() < options.clock() + Timeout(50); }));
  clock.advance(Timeout(50));
  EXPECT_EQ(next_batch(producer).bytes, first[0].bytes);
}

TEST_F(SessionProducerTrouble, GoesBackToTheExpectedSequenceNumber) {
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a", "b", "c"});
  refuse(first[2], Code::out_of_sequence, 1);
  EXPECT_EQ(next_batch(producer).bytes, first[1].bytes);
  EXPECT_EQ(next_batch(producer).bytes, first[2].bytes);
  EXPECT_EQ(producer.confirmed(), 1U);
}

TEST_F(SessionProducerTrouble, FinishesAPartlySentFrameBeforeItGoesBack) {
  options.window_bytes = 4 * limits::MiB;
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {"a"});
  // Larger than the system's buffer while the broker does not read.
  ASSERT_TRUE(producer.send(std::string(900'000, 'x')).ok());
  EXPECT_TRUE(producer.wants_write());
  refuse(first[0], Code::corrupt, 0);
  ASSERT_TRUE(producer.poll(Timeout(0)).ok());
  EXPECT_EQ(next_batch(producer).payloads.at(0).size(), 900'000U);
  EXPECT_EQ(next_batch(producer).bytes, first[0].bytes);
  EXPECT_EQ(next_batch(producer).sequence, 1U);
}

TEST_F(SessionProducerTrouble, FinishesAFrameIfItsBatchIsConfirmedInTheMeantime) {
  Producer producer = make();
  connect(producer);
  const auto first = send(producer, {std::string(900'000, 'x')});
  connect(producer);
  ASSERT_TRUE(producer.poll(Timeout(0)).ok());
  EXPECT_TRUE(producer.wants_write()) << "it should be in the midst of sending it again";
  confirm(1);  // the broker has handled the batch of the former connection
  ASSERT_TRUE(producer.poll(Timeout(0)).ok());
  EXPECT_EQ(producer.confirmed(), 1U);
  ASSERT_TRUE(producer.send("b").ok());
  EXPECT_EQ(next_batch(producer).bytes, first[0].bytes);
  const TakenBatch next = next_batch(producer);
  EXPECT_EQ(next.payloads, Payloads{"b"});
  EXPECT_EQ(next.sequence, 1U);
}

TEST_F(SessionProducerTrouble, RestartsACutFrameOnTheNextConnection) {
  options.window_bytes = 4 * limits::MiB;
  options.send_timeout = Timeout(0);
  Producer producer = make();
  connect(producer);
  ASSERT_TRUE(producer.send(std::string(900'000, 'x')).ok());
  ASSERT_TRUE(producer.send("b").ok());
  peer.read(100'000);
  connect(producer);
  EXPECT_EQ(next_batch(producer).payloads.at(0).size(), 900'000U);
  EXPECT_EQ(next_batch(producer).payloads, Payloads{"b"});
}

}  // namespace
}  // namespace lightq::test
