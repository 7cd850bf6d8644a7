/// Tests of a session producer over connections that break in every way: no message is lost or stored twice.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "broker/session_proxy_fixture.hpp"

namespace lightq::testing {
namespace {

using test::FaultMix;
using test::FaultPlan;
using test::FaultWay;

class SessionProxyProducerTest : public SessionProxyTest {
 protected:
  using SessionProxyTest::SessionProxyTest;

  /// Sends messages in bursts of random size until there are `count`, and waits until all are confirmed.
  void send_all(Producer& producer, std::uint64_t count, test::Random& random) {
    std::uint64_t sent = 0;
    while (sent < count) {
      const std::uint64_t burst = std::min(count - sent, random.one_in(3) ? 1 : random.between(1, 200));
      for (std::uint64_t i = 0; i < burst; ++i) producer.send(message(0, sent++)).value_or_throw();
      if (random.one_in(8)) {
        const auto flushed = producer.flush(deadline);
        ASSERT_TRUE(flushed.ok()) << flushed.error().text();
      } else {
        producer.poll(Timeout(random.below(2))).value_or_throw();
      }
    }
    const auto flushed = producer.flush(deadline);
    ASSERT_TRUE(flushed.ok()) << flushed.error().text();
    expect_fine(producer);
  }
  /// Sends `count` messages through a proxy with the faults of `mix`, and checks the log.
  void run(std::uint64_t count, const FaultMix& mix, ConfirmLevel level, test::Random& random) {
    begin(random.seed(), mix);
    auto one = producer({.level = level, .batch_bytes = 4096U << random.below(5)});
    send_all(one, count, random);
    if (mix.replay == 0 && mix.flip == 0) {
      EXPECT_EQ(0U, one.stats().violations) << one.last_error().text();
    }
    ASSERT_TRUE(one.close(deadline).ok());
    EXPECT_TRUE(proxy->wait_until_idle(deadline)) << "an end that nobody has noticed";
    expect_log({count});
    tell("proxy");
  }
};

class EachSeed : public SessionProxyProducerTest, public ::testing::WithParamInterface<SeedAndWay> {
 protected:
  EachSeed() : SessionProxyProducerTest(std::get<Spoken>(GetParam())) {}
  test::Random random{std::get<int>(GetParam())};
};

TEST_P(EachSeed, ConfirmsEverythingOnceThroughCutsAnywhere) {
  run(3'000, {.cut = 1, .to_client_max = 1024, .connections_max = 150},
      random.one_in(2) ? ConfirmLevel::received : ConfirmLevel::flushed, random);
  EXPECT_GT(proxy->counts().cuts, 0U);
}

TEST_P(EachSeed, ConfirmsEverythingOnceThroughAllThatNetworksDo) {
  run(3'000,
      bearable({.cut = 1,
                .stall = 12,
                .replay = 4,
                .flip = 4,
                .to_broker_max = 64 * 1024,
                .to_client_max = 1024,
                .connections_max = 50}),
      random.one_in(2) ? ConfirmLevel::received : ConfirmLevel::flushed, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EachSeed, each_seed(), seed_name);

/// Returns the given plans for the first connections, and no faults for later ones.
auto first_of(std::vector<FaultPlan> plans) {
  return [plans = std::move(plans), at = std::size_t{0}]() mutable {
    return at < plans.size() ? plans[at++] : FaultPlan{};
  };
}

class EachHandshake : public SessionProxyProducerTest, public ::testing::WithParamInterface<Spoken> {
 protected:
  EachHandshake() : SessionProxyProducerTest(GetParam()) {}
};

TEST_P(EachHandshake, ACutAtEachByteIsSurvived) {
  std::vector<FaultPlan> plans;
  for (std::uint64_t place = 0; place < 400; ++place) {
    FaultPlan plan;
    (place % 2 == 0 ? plan.to_broker : plan.to_client).cut_at = place / 2;
    plan.cut_resets = place % 4 < 2;
    plans.push_back(plan);
  }
  test::Random random;
  begin(first_of(plans));
  auto one = producer({.level = ConfirmLevel::received});
  send_all(one, 2'000, random);
  // Each connection but the last reaches its cut, unless the producer is finished before.
  std::uint64_t more = 0;
  for (; proxy->counts().cuts < 200; ++more) {
    one.send(message(0, 2'000 + more)).value_or_throw();
    ASSERT_TRUE(one.flush(deadline).ok());
  }
  EXPECT_EQ(0U, one.stats().violations) << one.last_error().text();
  ASSERT_TRUE(one.close(deadline).ok());
  expect_log({2'000 + more});
  tell("proxy");
}

INSTANTIATE_TEST_SUITE_P(Connections, EachHandshake, each_spoken(),
                         [](const auto& tested) { return name_of(tested.param); });

/// Returns the stream position of the first frame that a producer sends after opening its channel.
/// place_of_deliver does so for the first frame that a consumer receives.
std::uint64_t place_of_produce(const Secret& ticket) {
  session::Hello hello;
  hello.ticket = ticket;
  session::ProduceOpen open;
  open.topic = "orders";
  return session::encode_frame(hello, 0, 1).size() + session::encode_frame(open, 0, 1).size();
}
std::uint64_t place_of_deliver() {
  return session::encode_frame(session::Welcome{}, 0, 1).size() +
         session::encode_frame(session::ConsumeOpened{}, 1, 1).size();
}

/// Uses long timeouts, so that no connection ends because the machine is slow.
class SessionProxyPatientTest : public SessionProxyTest {
 protected:
  SessionProxyPatientTest() : SessionProxyTest(Spoken::frames, 10s) {}
};

TEST_F(SessionProxyPatientTest, ADuplicatedPieceIsAnInvalidFrameAndReported) {
  for (const std::size_t bytes : {1U, 7U, 19U, 20U, 21U, 100U, 1'000U, 3'000U}) {
    SCOPED_TRACE(bytes);
    FaultPlan plan;
    plan.to_broker.replay_at = 5'000;  // in the middle of the first batch
    plan.to_broker.replay_bytes = bytes;
    begin(first_of({plan}));
    auto one = producer({.level = ConfirmLevel::received, .batch_bytes = 16 * limits::KiB});
    const std::uint64_t before = client.stats("orders").value_or_throw().next_offset;
    for (int i = 0; i < 30; ++i) one.send(std::string(1'000, 'x')).value_or_throw();
    ASSERT_TRUE(one.flush(deadline).ok());
    EXPECT_EQ(1U, proxy->counts().replays);
    EXPECT_EQ(2U, one.stats().opens);
    EXPECT_NE(std::string::npos, one.last_error().text().find("invalid_frame")) << one.last_error().text();
    expect_fine(one);
    ASSERT_TRUE(one.close(deadline).ok());
    EXPECT_EQ(before + 30, client.stats("orders").value_or_throw().next_offset);
  }
}

/// docs/session.md: the frame's CRC, which also covers the header, can only be checked after the body has
/// arrived.
TEST_F(SessionProxyProducerTest, ACorruptedFrameLengthDoesNotMakeTheBrokerWait) {
  for (const bool to_broker : {true, false}) {
    SCOPED_TRACE(to_broker ? "produce" : "deliver");
    std::vector<FaultPlan> plans(1);
    FaultWay& way = to_broker ? plans[0].to_broker : plans[0].to_client;
    begin(first_of({}));
    const SessionAddress address = join(protocol::JoinType::push)().value_or_throw();
    way.flip_at = to_broker ? place_of_produce(address.ticket) : place_of_deliver();
    way.flip_at += session::frame_layout::body_bytes + 2;
    way.flip_bit = 3;  // 0.5 MiB longer
    if (!to_broker) {
      auto filler = producer();
      filler.send(message(0, 1)).value_or_throw();
      ASSERT_TRUE(filler.close(deadline).ok());
    }
    begin(first_of(plans));
    if (to_broker) {
      auto one = producer({.level = ConfirmLevel::received});
      one.send(message(0, 0)).value_or_throw();
      ASSERT_TRUE(one.flush(deadline).ok());
      expect_fine(one);
    } else {
      auto one = consumer();
      for (std::uint64_t i = 0; i < 2; ++i) {
        const auto received = one.receive(deadline).value_or_throw();
        ASSERT_TRUE(received.has_value());
        EXPECT_EQ(std::pair(std::uint64_t{0}, i), identify(received->text()));
      }
    }
    EXPECT_EQ(1U, proxy->counts().flips);
  }
}

class SessionProxyTlsTest : public SessionProxyTest {
 protected:
  SessionProxyTlsTest() : SessionProxyTest(Spoken::tls) {}
};

TEST_F(SessionProxyTlsTest, AnotherCertificateIsAnImmediateError) {
  begin(first_of({}));
  int joins = 0;
  const auto lying = [&joins, right = join(protocol::JoinType::push)]() -> Result<SessionAddress> {
    ++joins;
    Result<SessionAddress> address = right();
    if (address) address->certificate_sha256 = std::string(64, '0');
    return address;
  };
  auto one = Producer::open("orders", lying, {.backoff = 1ms}).value_or_throw();
  const auto opened = one.wait_open(deadline);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::unauthorized_access);
  EXPECT_NE(opened.error().message.find("is not the broker: it has the certificate"), std::string::npos);
  EXPECT_EQ(joins, 1);
  EXPECT_TRUE(proxy->wait_until_idle(deadline));
  EXPECT_EQ(0U, client.stats("orders").value_or_throw().publishers_count);
}

class EachStall : public SessionProxyTest, public ::testing::WithParamInterface<SeedAndWay> {
 protected:
  EachStall() : SessionProxyTest(std::get<Spoken>(GetParam())) {}
  /// Returns plans of connections that stall in the given directions (bit 1: to the broker, bit 2: to the
  /// client), each at another position.
  static std::vector<FaultPlan> plans(int directions) {
    std::vector<FaultPlan> plans;
    for (const std::uint64_t place : {0U, 10U, 150U, 400U, 20'000U}) {
      for (const bool swallows : {false, true}) {
        FaultPlan plan;
        if ((directions & 1) != 0) plan.to_broker.stall_at = place;
        if ((directions & 2) != 0) plan.to_client.stall_at = place / 200;
        plan.to_broker.stall_swallows = plan.to_client.stall_swallows = swallows;
        plans.push_back(plan);
      }
    }
    return plans;
  }
};

TEST_P(EachStall, AHalfOpenConnectionIsFoundByBothSides) {
  constexpr std::uint64_t each = 300;
  const auto plans = EachStall::plans(std::get<int>(GetParam()));
  begin(first_of(plans));
  std::vector<Producer> producers;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    producers.push_back(producer({.level = ConfirmLevel::received}));
    for (std::uint64_t k = 0; k < each; ++k) producers[i].send(message(i, k)).value_or_throw();
  }
  // Polls all producers together, since each one waits for its heartbeats.
  const auto begun = std::chrono::steady_clock::now();
  for (bool busy = true; busy;) {
    ASSERT_TRUE(in_time(begun));
    busy = false;
    for (Producer& one : producers) {
      one.poll(Timeout(1)).value_or_throw();
      busy |= one.unconfirmed() > 0;
    }
  }
  for (Producer& one : producers) {
    expect_fine(one);
    EXPECT_EQ(0U, one.stats().violations);
    ASSERT_TRUE(one.close(deadline).ok());
  }
  EXPECT_GE(proxy->counts().stalls, plans.size());
  EXPECT_TRUE(proxy->wait_until_idle(deadline)) << "the broker keeps a connection of which nothing comes";
  EXPECT_EQ(0U, client.stats("orders").value_or_throw().publishers_count);
  expect_log(std::vector<std::uint64_t>(plans.size(), each));
  tell("proxy");
}

INSTANTIATE_TEST_SUITE_P(Directions, EachStall, ::testing::Combine(::testing::Values(1, 2, 3), each_spoken()),
                         seed_name);

}  // namespace
}  // namespace lightq::testing
