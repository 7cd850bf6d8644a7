/// Attacks the session server of a reactor over its own sockets. The server that the broker uses withstands
/// every attack; servers with one mistake show that the attacks notice it.
#include "attacks/session_attacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "access/client_keys.hpp"
#include "attacks/endpoint_attacks.hpp"
#include "attacks/socket_line.hpp"
#include "plain/endpoint_set.hpp"
#include "session/session_server.hpp"
#include "support/faulty_storage.hpp"
#include "support/temp_dir.hpp"
#include "topic/reactor/topic_opener.hpp"

namespace lightq::broker {
namespace {

using lightq::test::old_administrator;
using lightq::test::unknown_user;
using protocol::Transport;
using testing::ElementsAre;
using testing::IsEmpty;

using Faults = std::vector<std::string>;

class SilentSink final : public LogSink {
 public:
  void write(LogLevel /*level*/, std::string_view /*line*/) override {}
};

/// A kind of session.
struct Way {
  Transport transport;
  SessionCarrier carrier;
  const char* name;
};
constexpr Way over_tcp{Transport::tcp, SessionCarrier::stream, "Tcp"};
constexpr Way over_zeromq{Transport::tcp, SessionCarrier::zmtp, "ZeromqOverTcp"};
constexpr Way over_unix{Transport::ipc, SessionCarrier::stream, "Unix"};
constexpr Way over_unix_zeromq{Transport::ipc, SessionCarrier::zmtp, "ZeromqOverUnix"};

/// A reactor's session server with one topic. Thread: the test's, which runs the event loop.
class Server final : public TopicRuntime::Ticker {
 public:
  Server(const EndpointSettings& settings, const SessionSettings& sessions, const TicketKey& tickets,
         WallClock now, AccessTable access)
      : settings_(settings),
        now_(std::move(now)),
        context_{loop_, disk_, ports_, sink_, tickets, settings_, now_, ids_, {}, {}, {}} {
    context_.scratch.resize(256 * limits::KiB);
    context_.access = std::move(access);
    const TopicDefinition definition{TopicId{1}, *TopicName::parse("orders"), {}};
    auto opened = TopicOpener(storage_, pool_).open(definition, {}, now_(), sink_).value_or_throw();
    auto store = opened.take_store(disk_, loop_);
    topic_ = std::make_unique<TopicRuntime>(context_, *this, make_endpoint_set, definition, std::move(store),
                                            std::move(opened));
    server_ = std::make_unique<SessionServer>(
        context_, [this](TopicId id) { return id == TopicId{1} ? topic_.get() : nullptr; }, sessions, "0");
  }
  /// Returns the address of a listener.
  std::string uri(const Way& way) {
    const Grant grant{TopicId{1}, EndpointRole::produce};
    return server_->join(grant, way.transport, way.carrier, {}).value_or_throw().bind_uri;
  }
  /// Runs the event loop until the present work is done.
  void turn() {
    std::stop_source stop;
    loop_.post_answer([&] { stop.request_stop(); });
    loop_.run(stop.get_token());
  }

  void tick_wanted(TopicRuntime& /*topic*/) override {}

 private:
  const EndpointSettings settings_;
  const WallClock now_;
  SilentSink sink_;
  test::FaultyStorage storage_;
  log::SegmentPool pool_{log::SegmentPoolOptions{"/pool"}, storage_};
  EventLoop loop_;
  DiskThread disk_;
  PortBook ports_{"127.0.0.1", std::nullopt, std::chrono::milliseconds(0)};
  std::atomic<std::uint64_t> ids_ = 1;
  ReactorContext context_;
  std::unique_ptr<TopicRuntime> topic_;
  std::unique_ptr<SessionServer> server_;
};

class ReactorSessionAttacks : public testing::Test {
 protected:
  ReactorSessionAttacks() {
    settings.advertise_host = "127.0.0.1";
    settings.ipc_directory = directory.path();
  }
  /// Makes the broker encrypt.
  void encrypt() {
    settings.curve_key = &server;
    settings.client_keys = &keys;
    sessions.tls = tls().get();
  }
  static const std::unique_ptr<TlsContext>& tls() {
    static const auto made = [] {
      const std::string key = make_tls_key().value_or_throw().expose();
      const std::string certificate = make_tls_certificate(key).value_or_throw();
      return TlsContext::make({certificate, key}, Timestamp{1'800'000'000'000'000}).value_or_throw();
    }();
    return made;
  }
  /// Attacks a server with the present settings. `expected_key`: the key with which clients of an encrypted
  /// server encrypt ZeroMQ; null: clients do not encrypt.
  Faults attack(const Way& way, const CurveKeys* expected_key = nullptr) {
    Server attacked(settings, sessions, *accepted, now, access);
    const bool zeromq = way.carrier == SessionCarrier::zmtp;
    const bool encrypts = expected_key != nullptr;
    return lightq::test::attack_sessions(
        {.connect = lightq::test::connect_to(attacked.uri(way), [&] { attacked.turn(); }),
         .over_zeromq = zeromq,
         .server_key = encrypts && zeromq ? std::optional(expected_key->public_key()) : std::nullopt,
         .uses_tls = encrypts && !zeromq && way.transport == Transport::tcp,
         .tickets = issuer,
         .grant = {TopicId{1}, EndpointRole::produce},
         .now = time});
  }

  const Timestamp time{1'800'000'000'000'000};
  const test::TempDir directory;
  const TicketKey issuer{TicketKey::random_bytes()};
  const TicketKey another{TicketKey::random_bytes()};
  const CurveKeys server;
  const ClientKeys keys;
  // The server's side:
  const TicketKey* accepted = &issuer;
  EndpointSettings settings;
  SessionSettings sessions;
  WallClock now = [this] { return time; };
  AccessTable access;
};

class ReactorSessionAttacksByWay : public ReactorSessionAttacks, public testing::WithParamInterface<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, ReactorSessionAttacksByWay,
                         testing::Values(over_tcp, over_zeromq, over_unix, over_unix_zeromq),
                         [](const testing::TestParamInfo<Way>& tested) { return tested.param.name; });

TEST_P(ReactorSessionAttacksByWay, SessionsWithstandThemWithAndWithoutEncryption) {
  EXPECT_THAT(attack(GetParam()), IsEmpty());
  encrypt();
  EXPECT_THAT(attack(GetParam(), &server), IsEmpty());
}

TEST_P(ReactorSessionAttacksByWay, NoticeAServerWithASlowClock) {
  now = [this] { return Timestamp{time.us - 7'200'000'000}; };
  EXPECT_THAT(attack(GetParam()), ElementsAre("admits a client with a ticket that has expired"));
}

TEST_P(ReactorSessionAttacksByWay, NoticeAServerThatAdmitsOtherUsers) {
  access.put_user({unknown_user.user, unknown_user.generation, true, {}});
  const Faults of_user = {"admits a client of a user who has lost the right"};
  EXPECT_EQ(attack(GetParam()), of_user);
  access.remove_user(unknown_user.user);
  access.set_admin_generation(old_administrator.generation);
  EXPECT_THAT(attack(GetParam()),
              ElementsAre("admits a client with a ticket of another administrator's password",
                          "refuses a client with a good ticket"));
  access.set_admin_generation(0);
  access.put_user({unknown_user.user, unknown_user.generation, true, {}});
  encrypt();
  EXPECT_EQ(attack(GetParam(), &server), of_user);
}

TEST_P(ReactorSessionAttacksByWay, NoticeAServerThatRefusesValidTickets) {
  accepted = &another;
  EXPECT_THAT(attack(GetParam()), ElementsAre("refuses a client with a good ticket"));
}

TEST_F(ReactorSessionAttacks, AttacksNoticeAServerThatAcceptsUnencryptedClients) {
  const Faults in_clear = {"admits a client that does not encrypt, with a good ticket",
                           "refuses a client with a good ticket"};
  encrypt();
  sessions.tls = nullptr;
  EXPECT_EQ(attack(over_tcp, &server), in_clear);
  EXPECT_THAT(attack(over_zeromq, &server), IsEmpty());
  encrypt();
  settings.curve_key = nullptr;
  EXPECT_EQ(attack(over_zeromq, &server), in_clear);
  EXPECT_EQ(attack(over_unix_zeromq, &server), in_clear);
  EXPECT_THAT(attack(over_tcp, &server), IsEmpty());
}

TEST_F(ReactorSessionAttacks, AttacksNoticeAServerThatEncryptsWithAnotherKey) {
  const CurveKeys foreign;
  encrypt();
  EXPECT_THAT(attack(over_zeromq, &foreign), ElementsAre("refuses a client with a good ticket"));
}

}  // namespace
}  // namespace lightq::broker
