/// Tests of the admission to an endpoint: the handshake with a ticket, byte by byte.
#include "access/connection_authorizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "endpoint/connection_harness.hpp"
#include "support/plain_client.hpp"
#include "topic/reactor/topic_authorizer.hpp"

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using test::command;
using test::frame;
using test::opening;
using testing::HasSubstr;
using zmtp::Mechanism;

constexpr Grant grant{TopicId{3}, EndpointRole::produce};

std::string greeting_of(Mechanism mechanism, bool is_server = false) {
  return std::string(as_text(zmtp::greeting(mechanism, is_server)));
}
std::string hello(std::string_view id, std::string_view secret) {
  std::vector<std::byte> bytes;
  lightq::test::append_plain_hello(bytes, id, secret);
  return std::string(as_text(bytes));
}
std::string initiate(std::string_view socket_type) {
  std::vector<std::byte> bytes;
  lightq::test::append_plain_initiate(bytes, socket_type);
  return std::string(as_text(bytes));
}
std::string ready(std::string_view socket_type) {
  return opening(socket_type).substr(zmtp::greeting_bytes);
}

class ConnectionAuthorizerTest : public testing::Test {
 protected:
  /// The authorizer's side of a handshake at a producer's endpoint.
  struct Side {
    explicit Side(const ConnectionAuthorizer& authorizer) {
      handshake.guard(&authorizer);
      handshake.begin(said);
    }
    std::size_t take(const std::string& bytes, std::size_t piece) {
      std::size_t used = 0;
      for (std::size_t come = 0; come < bytes.size() && handshake.failure().empty();) {
        come = std::min(bytes.size(), come + piece);
        used += handshake.take(as_byte_view(bytes).subspan(used, come - used), said);
      }
      return used;
    }
    [[nodiscard]] std::string text() const { return std::string(as_text(said)); }

    ZmtpHandshake handshake{"PULL", {"PUSH"}};
    std::vector<std::byte> said;
  };

  /// Returns the reason why `authorizer` refuses a peer that sends `bytes`. Checks whether it
  /// counts as unauthorized, that is, for lack of a good ticket.
  static std::string failure(const ConnectionAuthorizer& authorizer, const std::string& bytes,
                             bool unauthorized) {
    Side side(authorizer);
    side.take(bytes, bytes.size());
    EXPECT_FALSE(side.handshake.complete());
    EXPECT_EQ(side.handshake.unauthorized(), unauthorized);
    return side.handshake.failure();
  }
  [[nodiscard]] std::string with_ticket(const protocol::Ticket& shown) const {
    return plain + hello(shown.id, shown.secret.expose()) + initiate("PUSH");
  }

  Timestamp time{1'800'000'000'000'000};
  const WallClock now = [this] { return time; };
  const TicketKey tickets{TicketKey::random_bytes()};
  const ConnectionAuthorizer guarded{tickets, now, grant};
  AccessTable access;
  const ConnectionAuthorizer open;
  const protocol::Ticket ticket = tickets.issue(grant, 1h, time);
  const std::string plain = greeting_of(Mechanism::plain);
};

TEST_F(ConnectionAuthorizerTest, ATicketIsAcceptedWithAnySplitOfThePeersBytes) {
  const std::string whole = with_ticket(ticket);
  for (std::size_t piece = 1; piece <= whole.size(); ++piece) {
    Side side(guarded);
    EXPECT_EQ(side.take(whole + frame("first"), piece), whole.size()) << "in pieces of " << piece;
    EXPECT_TRUE(side.handshake.complete());
    EXPECT_TRUE(side.handshake.peer_speaks_3_1());
    EXPECT_FALSE(side.handshake.unauthorized());
    EXPECT_EQ(side.handshake.failure(), "");
    EXPECT_EQ(side.text(), greeting_of(Mechanism::plain, true) + command("WELCOME", "") + ready("PULL"));
  }
  Side short_of(guarded);
  short_of.take(whole.substr(0, whole.size() - 1), 1);
  EXPECT_FALSE(short_of.handshake.complete());
  EXPECT_EQ(short_of.handshake.failure(), "");
}

TEST_F(ConnectionAuthorizerTest, WelcomeFollowsAValidHelloAndReadyFollowsInitiate) {
  Side side(guarded);
  EXPECT_EQ(side.text(), plain.substr(0, zmtp::greeting_head_bytes));
  side.take(plain, 1);
  EXPECT_EQ(side.text(), greeting_of(Mechanism::plain, true)) << "the peer says HELLO first";
  side.take(hello(ticket.id, ticket.secret.expose()), 1);
  EXPECT_EQ(side.text(), greeting_of(Mechanism::plain, true) + command("WELCOME", ""));
  EXPECT_FALSE(side.handshake.complete());
}

TEST_F(ConnectionAuthorizerTest, APeerWithoutAValidTicketIsToldSoAndClosed) {
  const TicketKey other(TicketKey::random_bytes());
  const auto of_topic = tickets.issue({TopicId{4}, grant.role}, 1h, time);
  const auto of_role = tickets.issue({grant.topic, EndpointRole::pull}, 1h, time);
  const std::string error = command("ERROR",
                                    "\x03"
                                    "400");
  const std::vector<std::pair<protocol::Ticket, std::string>> refused = {
      {other.issue(grant, 1h, time), "did not issue"},
      {{ticket.id, of_topic.secret, 0}, "did not issue"},
      {{"", "", 0}, "a malformed ticket"},
      {{std::string(255, '0'), std::string(255, '0'), 0}, "a malformed ticket"},
      {of_topic, "another topic"},
      {of_role, "another role or mode"},
      {tickets.issue(grant, 0ms, time), "expired"}};
  for (const auto& [shown, why] : refused) {
    Side side(guarded);
    side.take(with_ticket(shown), 1);
    EXPECT_FALSE(side.handshake.complete());
    EXPECT_TRUE(side.handshake.unauthorized());
    EXPECT_THAT(side.handshake.failure(), HasSubstr(why));
    EXPECT_EQ(side.text(), greeting_of(Mechanism::plain, true) + error);
  }
}

TEST_F(ConnectionAuthorizerTest, ATicketEndsWithItsTime) {
  time.us += 3'599'999'000;
  Side in_time(guarded);
  in_time.take(with_ticket(ticket), 1);
  EXPECT_TRUE(in_time.handshake.complete());
  time.us += 1'000;
  EXPECT_THAT(failure(guarded, with_ticket(ticket), true), HasSubstr("expired"));
}

TEST_F(ConnectionAuthorizerTest, APeerWithNullIsToldTheMechanismAndClosed) {
  Side side(guarded);
  side.take(opening("PUSH"), 1);
  EXPECT_FALSE(side.handshake.complete());
  EXPECT_TRUE(side.handshake.unauthorized());
  EXPECT_THAT(side.handshake.failure(), HasSubstr("no ticket"));
  EXPECT_EQ(side.text(), greeting_of(Mechanism::plain, true));
}

TEST_F(ConnectionAuthorizerTest, AClientThatSendsWelcomeForHelloIsUnderstood) {
  for (const auto& [shown, lets_in] :
       {std::pair(ticket, true), std::pair(protocol::Ticket{"id", "no", 0}, false)}) {
    std::string data;
    for (const std::string& text : {shown.id, shown.secret.expose()})
      data += static_cast<char>(text.size()) + text;
    Side side(guarded);
    side.take(plain + command("WELCOME", data) + initiate("PUSH"), 1);
    EXPECT_EQ(side.handshake.complete(), lets_in);
    EXPECT_EQ(side.handshake.unauthorized(), !lets_in);
  }
}

TEST_F(ConnectionAuthorizerTest, AnInvalidHandshakeIsClosed) {
  const std::string good = hello(ticket.id, ticket.secret.expose());
  EXPECT_EQ(failure(guarded, plain + initiate("PUSH"), false), "a handshake without HELLO");
  EXPECT_EQ(failure(guarded, plain + ready("PUSH"), false), "a handshake without HELLO");
  EXPECT_EQ(failure(guarded, plain + command("WELCOME", ""), false), "a handshake without HELLO");
  EXPECT_EQ(failure(guarded, plain + command("HELLO", ""), false), "a handshake without HELLO");
  EXPECT_EQ(failure(guarded, plain + command("HELLO", "\x02id"), false), "a handshake without HELLO");
  EXPECT_EQ(failure(guarded,
                    plain + command("HELLO",
                                    "\x02id\x01"
                                    "ab"),
                    false),
            "a handshake without HELLO");
  EXPECT_EQ(failure(guarded, plain + command("HELLO", std::string(5000, 'x')), false),
            "an invalid ZMTP handshake");
  EXPECT_EQ(failure(guarded, plain + frame("message"), false), "an invalid ZMTP handshake");
  EXPECT_EQ(failure(guarded, plain + good + good, false), "a handshake without INITIATE");
  EXPECT_EQ(failure(guarded, plain + good + ready("PUSH"), false), "a handshake without INITIATE");
  EXPECT_EQ(failure(guarded, plain + good + frame("message"), false), "an invalid ZMTP handshake");
  EXPECT_THAT(failure(guarded, plain + good + initiate("SUB"), false), HasSubstr("of type SUB"));
  EXPECT_THAT(failure(guarded, plain + good + command("INITIATE", ""), false), HasSubstr("of type ?"));
  EXPECT_THAT(failure(guarded, greeting_of(Mechanism::plain, true) + good + initiate("PUSH"), false),
              HasSubstr("in the role of a server"));
  std::string curve = with_ticket(ticket);
  curve.replace(12, 5, "CURVE");
  EXPECT_THAT(failure(guarded, curve, false), HasSubstr("other than NULL and PLAIN"));
  EXPECT_EQ(failure(guarded, "GET / HTTP/1.1", false), "not a ZeroMQ peer");
}

TEST_F(ConnectionAuthorizerTest, AnOpenEndpointAcceptsEitherMechanismAndAnyTicket) {
  const std::string head = greeting_of(Mechanism::null).substr(0, zmtp::greeting_head_bytes);
  for (std::size_t piece = 1; piece <= 64; ++piece) {
    Side null(open);
    EXPECT_EQ(null.text(), head) << "what mechanism it is, the peer says first";
    null.take(opening("PUSH"), piece);
    EXPECT_TRUE(null.handshake.complete());
    EXPECT_EQ(null.text(), greeting_of(Mechanism::null) + ready("PULL"));
    Side with(open);
    with.take(plain + hello("whoever", "whatever") + initiate("PUSH"), piece);
    EXPECT_TRUE(with.handshake.complete());
    EXPECT_EQ(with.text(), greeting_of(Mechanism::plain, true) + command("WELCOME", "") + ready("PULL"));
  }
  EXPECT_THAT(failure(open, opening("SUB"), false), HasSubstr("of type SUB"));
  EXPECT_THAT(failure(open, plain + hello("", "") + initiate("SUB"), false), HasSubstr("of type SUB"));
}

TEST_F(ConnectionAuthorizerTest, IsOpenIfTheTopicIsOrAllAre) {
  const TopicDefinition closed{TopicId{3}, *TopicName::parse("t"), {}};
  TopicDefinition of_all = closed;
  of_all.settings.open = true;
  EndpointSettings settings;
  EXPECT_FALSE(authorizer_of(tickets, now, settings, access, closed, EndpointRole::pull).is_open());
  EXPECT_TRUE(authorizer_of(tickets, now, settings, access, of_all, EndpointRole::pull).is_open());
  settings.open_topics = true;
  EXPECT_TRUE(authorizer_of(tickets, now, settings, access, closed, EndpointRole::pull).is_open());
}

TEST_F(ConnectionAuthorizerTest, ATicketIsGoodAsLongAsItsHolderMayDoThat) {
  const ConnectionAuthorizer authorizer(tickets, now, grant, access, *TopicName::parse("orders"));
  const auto mine = tickets.issue(grant, 1h, time, {.user = 7, .generation = 2});
  const auto lets_in = [&] {
    Side side(authorizer);
    side.take(with_ticket(mine), 100);
    EXPECT_EQ(side.handshake.holder(), side.handshake.complete() ? (TicketHolder{7, 2}) : TicketHolder{});
    return side.handshake.complete();
  };
  EXPECT_FALSE(lets_in()) << "nobody knows the user";
  access.put_user({7, 2, false, {{"ord*", {.produce = true}}}});
  EXPECT_TRUE(lets_in());
  access.put_user({7, 3, false, {{"ord*", {.produce = true}}}});
  EXPECT_FALSE(lets_in()) << "the password is another one";
  Side refused(authorizer);
  refused.take(with_ticket(mine), 100);
  EXPECT_TRUE(refused.handshake.unauthorized());
  EXPECT_THAT(refused.handshake.failure(), HasSubstr("without the right"));
  Side by_nobody(authorizer);
  by_nobody.take(with_ticket(ticket), 100);
  EXPECT_TRUE(by_nobody.handshake.complete()) << "a ticket that names nobody asks nobody";
}

TEST_F(ConnectionAuthorizerTest, APeerWithoutAValidTicketAtAnOpenEndpointIsAnonymous) {
  const TicketHolder anonymous{.user = FairShare::anonymous};
  ConnectionQuota quota(2);
  ConnectionAuthorizer authorizer(tickets, now, grant, access, *TopicName::parse("orders"));
  authorizer.open();
  authorizer.count(quota);
  access.put_user({7, 2, false, {{"ord*", {.produce = true}}}});
  access.set_admin_generation(1);
  const auto holder_of = [&](const std::string& said) {
    Side side(authorizer);
    side.take(said, 100);
    EXPECT_EQ(side.handshake.complete(), side.handshake.failure().empty());
    return side.handshake.complete() ? side.handshake.holder() : TicketHolder{};
  };
  const auto anns = with_ticket(tickets.issue(grant, 1h, time, {.user = 7, .generation = 2}));
  const auto admins = with_ticket(tickets.issue(grant, 1h, time, {.user = 0, .generation = 1}));
  EXPECT_EQ(holder_of(opening("PUSH")), anonymous);
  EXPECT_EQ(holder_of(with_ticket(ticket)), anonymous) << "its ticket names nobody";
  EXPECT_EQ(holder_of(opening("PUSH")), TicketHolder{}) << "they have as many as one user may have";
  EXPECT_EQ(holder_of(plain + hello("no", "ticket") + initiate("PUSH")), TicketHolder{});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(holder_of(anns), (TicketHolder{7, 2}));
  EXPECT_EQ(holder_of(anns), TicketHolder{});
  for (int i = 0; i < 3; ++i) {
    Side side(authorizer);
    side.take(admins, 100);
    EXPECT_TRUE(side.handshake.complete()) << "the administrator has no bound";
    EXPECT_EQ(side.handshake.holder(), (TicketHolder{0, 1}));
  }
  quota.give_back(FairShare::anonymous);
  EXPECT_EQ(holder_of(opening("PUSH")), anonymous);
}

}  // namespace
}  // namespace lightq::broker
