/// A broker, and clients that reach its sessions only through a fault proxy.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <lightq/client.hpp>
#include <lightq/impl/control_connection.hpp>

#include "broker/each_way.hpp"
#include "broker/embedded_broker.hpp"
#include "support/fault_proxy.hpp"
#include "support/planted.hpp"
#include "support/random.hpp"

namespace lightq::testing {

using namespace std::chrono_literals;

/// The session wire that producers and consumers use through the proxy.
enum class Spoken { frames, zmq, tls };
inline auto each_spoken() {
  return ::testing::Values(Spoken::frames, Spoken::zmq, Spoken::tls);
}
inline std::string name_of(Spoken spoken) {
  return spoken == Spoken::frames ? "socket" : spoken == Spoken::zmq ? "zmq" : "tls";
}

/// A seed and a session wire.
using SeedAndWay = std::tuple<int, Spoken>;
inline auto each_seed() {
  return ::testing::Combine(::testing::Range(0, 3), each_spoken());
}
inline std::string seed_name(const ::testing::TestParamInfo<SeedAndWay>& tested) {
  return std::to_string(std::get<int>(tested.param)) + "_" + name_of(std::get<Spoken>(tested.param));
}

/// Uses short timeouts on both sides, so that a test makes many connections.
class SessionProxyTest : public ::testing::Test {
 protected:
  static constexpr Timeout shortest{100};      // the heartbeat interval
  static constexpr Timeout deadline{120'000};  // the time limit of every wait

  explicit SessionProxyTest(Spoken spoken = Spoken::frames, Timeout heartbeat = shortest)
      : heartbeat_(heartbeat), spoken_(spoken) {
    client.create_topic("orders", {.broker_type = BrokerType::file}).value_or_throw();
  }

  void begin(std::function<test::FaultPlan()> plan) {
    proxy = std::make_unique<test::FaultProxy>(std::move(plan));
  }
  void begin(std::uint64_t seed, const test::FaultMix& mix) {
    begin([planner = test::FaultPlanner(seed, mix)]() mutable { return planner.next(); });
  }

  /// Returns a function that joins as a client does and returns the proxy's address.
  SessionJoin join(protocol::JoinType type) {
    return [this, type]() -> Result<SessionAddress> {
      const protocol::Join asked{{"alice", planted::user_password},
                                 *TopicName::parse("orders"),
                                 type,
                                 spoken_ == Spoken::zmq ? ConnectionType::zmq : ConnectionType::socket,
                                 Transport::tcp,
                                 false,
                                 protocol::Delivery::session};
      const auto reply = control.ask(asked, 30s);
      if (!reply) return reply.error();
      const auto* const joined = std::get_if<protocol::JoinReply>(&*reply);
      if (joined == nullptr) return Error{ErrorCode::internal, "no answer to join"};
      SessionAddress address{proxy->in_front_of(joined->bind_uri), joined->ticket.value().text()};
      address.over_zmq = spoken_ == Spoken::zmq;
      if (spoken_ == Spoken::tls) address.certificate_sha256 = joined->tls.value().certificate_sha256;
      return address;
    };
  }
  /// Returns the faults that the wire can survive. Over ZeroMQ, corrupted or repeated bytes may look like
  /// valid ZeroMQ frames, and a message is lost unnoticed.
  [[nodiscard]] test::FaultMix bearable(test::FaultMix mix) const {
    if (spoken_ == Spoken::zmq) mix.replay = mix.flip = 0;
    return mix;
  }
  Producer producer(ProducerOptions options = {}) {
    be_impatient(options);
    return Producer::open("orders", join(protocol::JoinType::push), std::move(options)).value_or_throw();
  }
  Consumer consumer(ConsumerOptions options = {}) {
    be_impatient(options);
    options.ack_timeout = 10min;
    const auto type = options.mode == ConsumeMode::group ? protocol::JoinType::pull : protocol::JoinType::sub;
    return Consumer::open("orders", join(type), std::move(options)).value_or_throw();
  }

  /// Returns a message that names its producer and number. Both determine its length and content.
  static std::string message(std::uint64_t producer, std::uint64_t number) {
    std::uint64_t state = (producer << 32U) ^ (number + 1) * 0x9E3779B97F4A7C15U;
    const std::uint64_t size = number % 50 == 7 ? 20'000 : (state >> 40U) % 700;
    std::string text = std::to_string(producer) + ":" + std::to_string(number) + " ";
    while (text.size() < size) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      text.push_back(static_cast<char>(state >> 56U));
    }
    return text;
  }
  /// Returns the producer and number of a message, and checks each of its bytes.
  static std::pair<std::uint64_t, std::uint64_t> identify(std::string_view text) {
    const std::string head(text.substr(0, text.find(' ')));
    const std::uint64_t of = std::strtoull(head.c_str(), nullptr, 10);
    const std::uint64_t number = std::strtoull(head.substr(head.find(':') + 1).c_str(), nullptr, 10);
    EXPECT_TRUE(text == message(of, number)) << head;
    return {of, number};
  }

  /// Reads the whole log without the proxy. Checks that it has the messages [0, count) of each producer, once
  /// and in order.
  void expect_log(const std::vector<std::uint64_t>& counts) {
    auto reader = client.consumer("orders", {.mode = ConsumeMode::own}).value_or_throw();
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts) all += count;
    std::vector<std::uint64_t> next(counts.size());
    for (std::uint64_t i = 0; i < all; ++i) {
      const auto message = reader.receive(30s).value_or_throw();
      ASSERT_TRUE(message.has_value()) << i << " of " << all;
      ASSERT_EQ(Offset{i}, message->offset);
      const auto [of, number] = identify(message->text());
      ASSERT_LT(of, next.size());
      ASSERT_EQ(next[of]++, number) << "of producer " << of;
      reader.acknowledge(*message);
    }
    EXPECT_EQ(counts, next);
    EXPECT_FALSE(reader.receive(0ms).value_or_throw().has_value());
    const auto stats = client.stats("orders").value_or_throw();
    EXPECT_EQ(all, stats.next_offset);
    EXPECT_EQ(all, stats.messages_received);
  }
  [[nodiscard]] static bool in_time(std::chrono::steady_clock::time_point begun) {
    return std::chrono::steady_clock::now() - begun < deadline;
  }
  static void expect_fine(const Producer& producer) {
    const ProducerStats stats = producer.stats();
    EXPECT_EQ(stats.sent, stats.confirmed);
    EXPECT_EQ(0U, stats.refused + stats.unknown + stats.lost);
  }
  /// Records the proxy's faults in the test's properties.
  void tell(const char* what) const {
    const test::FaultCounts counts = proxy->counts();
    RecordProperty(what, std::to_string(counts.connections) + " connections, " + std::to_string(counts.cuts) +
                             " cut, " + std::to_string(counts.stalls) + " directions stalled, " +
                             std::to_string(counts.replays) + " replays, " + std::to_string(counts.flips) +
                             " flips, " + std::to_string(counts.bytes) + " bytes");
  }

 private:
  const Timeout heartbeat_;
  const Spoken spoken_;

 protected:
  EmbeddedBroker broker{"tcp://127.0.0.1:0", [this](broker::Config& config) {
                          config.session_heartbeat = heartbeat_;
                          config.flush_interval = 5ms;
                          config.reactors = 1;
                          config.encrypt = spoken_ == Spoken::tls;
                        }};
  Client client = broker.client();
  std::shared_ptr<zmq::context_t> context = std::make_shared<zmq::context_t>();
  ControlConnection control{context, broker.uri(), identity()};
  std::unique_ptr<test::FaultProxy> proxy;

 private:
  [[nodiscard]] std::shared_ptr<const CurveIdentity> identity() const {
    const std::string key = broker.server_key();
    return key.empty() ? nullptr : CurveIdentity::make(key).value_or_throw();
  }
  template <typename Options>
  void be_impatient(Options& options) const {
    options.heartbeat = heartbeat_;
    options.attempt_timeout = 2s;
    options.backoff = 1ms;
    options.backoff_max = 2ms;
    // The consumer's silence reveals a connection that is stalled in one direction.
    if constexpr (requires { options.may_be_busy; }) options.may_be_busy = false;
  }
};

}  // namespace lightq::testing
