/// Tests of the producers that reach a topic over sessions: their notifications, and how many of them are
/// asked to resume. They count, and measure no times.
#include "topic/runtime/topic_producers.hpp"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lightq::broker {
namespace {

class CountingProducer final : public SessionProducer {
 public:
  [[nodiscard]] std::uint64_t producer_id() const override { return id; }
  [[nodiscard]] bool needs_durable() const override { return needs; }
  void admitted() override { ++admissions; }
  bool resume() override {
    ++resumes;
    return has_room;
  }
  bool durable_moved() override {
    ++moves;
    if (detaches != nullptr) producers->detach(*detaches);
    return waits_on;
  }
  void end(ClientError code, const std::string&) override { ended = code; }

  std::uint64_t id = 0;
  bool needs = false;
  bool has_room = true;
  bool waits_on = false;
  TopicProducers* producers = nullptr;
  SessionProducer* detaches = nullptr;
  int admissions = 0;
  int resumes = 0;
  int moves = 0;
  ClientError ended = ClientError::none;
};

class TopicProducersTest : public testing::Test {
 protected:
  std::vector<std::unique_ptr<CountingProducer>> open(std::size_t count) {
    std::vector<std::unique_ptr<CountingProducer>> opened;
    for (std::size_t i = 0; i < count; ++i) {
      opened.push_back(std::make_unique<CountingProducer>());
      open(*opened.back());
    }
    return opened;
  }
  void open(CountingProducer& producer, ProducerIdentity wanted = {}) {
    const auto opened = producers.open(wanted, producer);
    ASSERT_EQ(opened.refusal, ClientError::none);
    producer.id = opened.producer.identity.id;
    identity = opened.producer.identity;
  }

  DurableProducers known{DurableProducers::Kept::in_memory, ProducerTable(10'000, 1'000'000'000)};
  const WallClock clock = [] { return Timestamp{1}; };
  TopicProducers producers{known, clock};
  ProducerIdentity identity;
};

TEST_F(TopicProducersTest, OnlyWaitingProducersAreNotifiedOfDurability) {
  const auto opened = open(1'000);
  CountingProducer& waiting = *opened[500];
  producers.await_durable(waiting);
  producers.durable_moved();
  producers.durable_moved();
  EXPECT_EQ(waiting.moves, 1) << "it waits no more";
  waiting.waits_on = true;
  producers.await_durable(waiting);
  producers.durable_moved();
  producers.durable_moved();
  EXPECT_EQ(waiting.moves, 3);
  int others = 0;
  for (const auto& producer : opened) others += producer.get() == &waiting ? 0 : producer->moves;
  EXPECT_EQ(others, 0);
  for (const auto& producer : opened) producers.detach(*producer);
}

TEST_F(TopicProducersTest, TheBrokersOwnAreNoClients) {
  const auto users = open(2);
  CountingProducer own;
  const auto opened = producers.open({77, 0}, own, {.user = ProducerTable::brokers_own});
  ASSERT_EQ(opened.refusal, ClientError::none);
  EXPECT_EQ(producers.connected_clients(), 2U);
  producers.detach(own);
  EXPECT_EQ(producers.connected_clients(), 2U);
  ASSERT_EQ(producers.open({77, 0}, own, {.user = ProducerTable::brokers_own}).refusal, ClientError::none);
  producers.detach(*users.front());
  EXPECT_EQ(producers.connected_clients(), 1U);
  producers.end(ClientError::shutting_down, "the test ends");
  EXPECT_EQ(producers.connected_clients(), 0U);
}

TEST_F(TopicProducersTest, AProducerThatLeavesDuringANotificationIsNotNotified) {
  const auto opened = open(2);
  for (const auto& producer : opened) producers.await_durable(*producer);
  opened[0]->producers = opened[1]->producers = &producers;
  opened[0]->detaches = opened[1].get();
  opened[1]->detaches = opened[0].get();
  producers.durable_moved();
  EXPECT_EQ(opened[0]->moves + opened[1]->moves, 1);
  EXPECT_EQ(producers.connected(), 1U);
}

TEST_F(TopicProducersTest, OnlyWaitingProducersAreAskedInTurn) {
  const auto opened = open(100);
  EXPECT_TRUE(producers.resume());
  for (const std::size_t i : {10, 20, 30}) {
    opened[i]->has_room = false;
    producers.note_held(*opened[i]);
    producers.note_held(*opened[i]);  // has no effect
  }
  EXPECT_FALSE(producers.resume());
  EXPECT_FALSE(producers.resume());
  EXPECT_FALSE(producers.resume());
  EXPECT_FALSE(producers.resume());
  EXPECT_EQ(opened[10]->resumes, 2) << "whoever found no room is asked last";
  EXPECT_EQ(opened[20]->resumes, 1);
  EXPECT_EQ(opened[30]->resumes, 1);
  opened[20]->has_room = opened[30]->has_room = true;
  EXPECT_FALSE(producers.resume());
  producers.detach(*opened[10]);
  EXPECT_TRUE(producers.resume());
  EXPECT_EQ(opened[10]->resumes, 3);
  EXPECT_EQ(opened[40]->resumes, 0);
  for (const auto& producer : opened) producers.detach(*producer);
}

TEST_F(TopicProducersTest, OpeningAProducerIdFencesItsFormerProducer) {
  CountingProducer former;
  open(former);
  CountingProducer latter;
  open(latter, identity);
  EXPECT_EQ(former.ended, ClientError::fenced);
  EXPECT_EQ(producers.connected(), 1U);
  producers.end(ClientError::shutting_down, "the broker stops");
  EXPECT_EQ(latter.ended, ClientError::shutting_down);
  EXPECT_EQ(producers.connected(), 0U);
}

TEST_F(TopicProducersTest, OnlyProducersThatNeedTheDiskEnd) {
  const auto opened = open(3);
  opened[1]->needs = true;
  producers.end_needing_durable(ClientError::io_error, "the disk has failed");
  EXPECT_EQ(opened[1]->ended, ClientError::io_error);
  EXPECT_EQ(opened[0]->ended, ClientError::none);
  EXPECT_EQ(producers.connected(), 2U);
  for (const auto& producer : opened) producers.detach(*producer);
}

}  // namespace
}  // namespace lightq::broker
