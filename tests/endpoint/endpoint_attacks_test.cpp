/// Attacks the authorizers of endpoints and of the control socket in memory. The authorizers that the broker
/// uses withstand every attack; authorizers with one mistake show that the attacks notice it.
#include "attacks/endpoint_attacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "attacks/memory_line.hpp"
#include "topic/reactor/topic_authorizer.hpp"

namespace lightq::broker {
namespace {

using lightq::test::attack_with_keys;
using lightq::test::attack_with_tickets;
using lightq::test::attack_without_tickets;
using lightq::test::connect_to;
using lightq::test::old_administrator;
using lightq::test::unknown_user;
using testing::ElementsAre;
using testing::IsEmpty;

using Faults = std::vector<std::string>;

class EndpointAttacks : public testing::TestWithParam<EndpointRole> {
 protected:
  [[nodiscard]] ConnectionAuthorizer authorizer(const EndpointSettings& settings) const {
    return authorizer_of(tickets, now, settings, access, topic, grant.role);
  }
  [[nodiscard]] lightq::test::EndpointTarget target(const ConnectionAuthorizer& attacked) const {
    return {connect_to(attacked), "PUSH", tickets, grant, time};
  }

  const Timestamp time{1'800'000'000'000'000};
  const WallClock now = [this] { return time; };
  const WallClock slow = [this] { return Timestamp{time.us - 7'200'000'000}; };
  const TicketKey tickets{TicketKey::random_bytes()};
  const Grant grant{TopicId{3}, GetParam()};
  const TopicDefinition topic{grant.topic, *TopicName::parse("orders"), {}};
  AccessTable access;
};

class TicketAttacks : public EndpointAttacks {
 protected:
  [[nodiscard]] Faults attack(const ConnectionAuthorizer& attacked) const {
    return attack_with_tickets(target(attacked));
  }
};
INSTANTIATE_TEST_SUITE_P(Roles, TicketAttacks,
                         testing::Values(EndpointRole::produce, EndpointRole::pull, EndpointRole::sub));

TEST_P(TicketAttacks, TheAuthorizerOfAnEndpointWithstandsThem) {
  EXPECT_THAT(attack(authorizer({})), IsEmpty());
  EXPECT_THAT(attack(ConnectionAuthorizer(tickets, now, grant)), IsEmpty());
}

TEST_P(TicketAttacks, NoticeAnOpenAuthorizer) {
  const Faults all = {"admits a client without a ticket",
                      "admits a client with an empty ticket",
                      "admits a client with a wrong secret",
                      "admits a client with another broker's ticket",
                      "admits a client with a ticket of another topic",
                      "admits a client with a ticket of another role",
                      "admits a client with a ticket that has expired",
                      "admits a client of a user who has lost the right",
                      "admits a client with a ticket of another administrator's password",
                      "admits a client with a ticket that expires too late"};
  EXPECT_EQ(attack(ConnectionAuthorizer()), all);
  EndpointSettings open;
  open.open_topics = true;
  EXPECT_EQ(attack(authorizer(open)), all);
}

TEST_P(TicketAttacks, NoticeEachMistakeOfAnAuthorizer) {
  EXPECT_THAT(attack(ConnectionAuthorizer(tickets, slow, grant)),
              ElementsAre("admits a client with a ticket that has expired"));
  access.put_user({unknown_user.user, unknown_user.generation, true, {}});
  EXPECT_THAT(attack(authorizer({})), ElementsAre("admits a client of a user who has lost the right"));
  access.remove_user(unknown_user.user);
  access.set_admin_generation(old_administrator.generation);
  EXPECT_THAT(attack(authorizer({})),
              ElementsAre("admits a client with a ticket of another administrator's password",
                          "refuses a client with a good ticket"));
  access.set_admin_generation(0);
  EXPECT_THAT(attack(ConnectionAuthorizer(tickets, now, {TopicId{9}, grant.role})),
              ElementsAre("refuses a client with a good ticket"));
  const TicketKey another(TicketKey::random_bytes());
  EXPECT_THAT(attack(ConnectionAuthorizer(another, now, grant)),
              ElementsAre("refuses a client with a good ticket"));
}

/// Keys that are registered, each in another way.
class KeyAttacks : public EndpointAttacks {
 protected:
  KeyAttacks() {
    using namespace std::chrono_literals;
    const auto at = [this](std::chrono::milliseconds later) {
      return static_cast<std::uint64_t>(time.us / 1000 + later.count());
    };
    const std::uint64_t later_ms = at(1min);
    const auto too_late_ms = at(std::chrono::milliseconds(limits::ticket_ms_max) + 1h);
    keys.put({good.public_key(), grant, later_ms, {}});
    keys.put({of_other_topic.public_key(), {other_topic, grant.role}, later_ms, {}});
    keys.put({of_other_role.public_key(), {grant.topic, other_role}, later_ms, {}});
    keys.put({expired.public_key(), grant, at(-1h), {}});
    keys.put({of_unknown_user.public_key(), grant, later_ms, unknown_user});
    keys.put({of_old_password.public_key(), grant, later_ms, old_administrator});
    keys.put({endless.public_key(), grant, too_late_ms, {}});
  }
  [[nodiscard]] EndpointSettings settings() const {
    EndpointSettings settings;
    settings.curve_key = &server;
    settings.client_keys = &keys;
    return settings;
  }
  [[nodiscard]] Faults attack(const ConnectionAuthorizer& attacked) const {
    return attack_with_keys(target(attacked), server.public_key(), good,
                            {{"with a key of another topic", of_other_topic},
                             {"with a key of another role", of_other_role},
                             {"with a key that has expired", expired},
                             {"of a user who has lost the right", of_unknown_user},
                             {"with a key of another administrator's password", of_old_password},
                             {"with a key that expires too late", endless}});
  }

  const TopicId other_topic{~grant.topic.value};
  const EndpointRole other_role = grant.role == EndpointRole::sub ? EndpointRole::pull : EndpointRole::sub;
  const CurveKeys server;
  const CurveKeyPair good, of_other_topic, of_other_role, expired, of_unknown_user, of_old_password, endless;
  ClientKeys keys;
};
INSTANTIATE_TEST_SUITE_P(Roles, KeyAttacks,
                         testing::Values(EndpointRole::produce, EndpointRole::pull, EndpointRole::sub));

TEST_P(KeyAttacks, TheAuthorizerOfAnEndpointWithstandsThem) {
  const auto encrypted = settings();
  EXPECT_THAT(attack(authorizer(encrypted)), IsEmpty());
}

TEST_P(KeyAttacks, NoticeAnAuthorizerThatDoesNotEncryptOrIsOpen) {
  auto in_clear = settings();
  in_clear.curve_key = nullptr;
  EXPECT_THAT(attack(authorizer(in_clear)),
              ElementsAre("admits a client that does not encrypt, with a good ticket",
                          "refuses a client with a registered key"));
  auto open = settings();
  open.open_topics = true;
  EXPECT_THAT(
      attack(authorizer(open)),
      ElementsAre("admits a client with a key that is not registered",
                  "admits a client with a key of another topic", "admits a client with a key of another role",
                  "admits a client with a key that has expired",
                  "admits a client of a user who has lost the right",
                  "admits a client with a key of another administrator's password",
                  "admits a client with a key that expires too late"));
}

TEST_P(KeyAttacks, NoticeEachMistakeOfAnAuthorizer) {
  const auto encrypted = settings();
  EXPECT_THAT(attack(authorizer_of(tickets, slow, encrypted, access, topic, grant.role)),
              ElementsAre("admits a client with a key that has expired"));
  access.put_user({unknown_user.user, unknown_user.generation, true, {}});
  EXPECT_THAT(attack(authorizer(encrypted)), ElementsAre("admits a client of a user who has lost the right"));
  access.remove_user(unknown_user.user);
  access.set_admin_generation(old_administrator.generation);
  EXPECT_THAT(attack(authorizer(encrypted)),
              ElementsAre("admits a client with a key of another administrator's password",
                          "refuses a client with a registered key"));
}

TEST_P(KeyAttacks, NoticeAnAuthorizerWithOtherRequirements) {
  const auto encrypted = settings();
  EXPECT_THAT(
      attack(authorizer_of(tickets, now, encrypted, access, topic, other_role)),
      ElementsAre("admits a client with a key of another role", "refuses a client with a registered key"));
  const TopicDefinition another{other_topic, *TopicName::parse("other"), {}};
  EXPECT_THAT(
      attack(authorizer_of(tickets, now, encrypted, access, another, grant.role)),
      ElementsAre("admits a client with a key of another topic", "refuses a client with a registered key"));
  const CurveKeys foreign;
  auto with_another_key = settings();
  with_another_key.curve_key = &foreign;
  EXPECT_THAT(attack(authorizer(with_another_key)), ElementsAre("refuses a client with a registered key"));
  const ClientKeys empty;
  auto by_other_keys = settings();
  by_other_keys.client_keys = &empty;
  EXPECT_THAT(attack(authorizer(by_other_keys)), ElementsAre("refuses a client with a registered key"));
}

class ControlAttacks : public testing::Test {
 protected:
  [[nodiscard]] Faults attack(const ConnectionAuthorizer& attacked, bool anybody) const {
    return attack_without_tickets(connect_to(attacked), "PUSH", server.public_key(),
                                  anybody ? nullptr : &listed);
  }
  const CurveKeys server;
  const CurveKeyPair listed;
  const std::set<CurvePublicKey> allowed{listed.public_key()};
};

TEST_F(ControlAttacks, TheAuthorizerOfTheControlSocketWithstandsThem) {
  ConnectionAuthorizer open;
  open.encrypt(server, nullptr);
  EXPECT_THAT(attack(open, true), IsEmpty());
  ConnectionAuthorizer few;
  few.encrypt(server, nullptr);
  few.allow_only(allowed);
  EXPECT_THAT(attack(few, false), IsEmpty());
}

TEST_F(ControlAttacks, NoticeEachMistakeOfAnAuthorizer) {
  ConnectionAuthorizer open;
  open.encrypt(server, nullptr);
  EXPECT_THAT(attack(open, false),
              ElementsAre("admits a client with a key that allowed_client_keys does not list"));
  ConnectionAuthorizer few;
  few.encrypt(server, nullptr);
  few.allow_only(allowed);
  EXPECT_THAT(attack(few, true), ElementsAre("refuses a client with an unknown key"));
  ConnectionAuthorizer nobody;
  nobody.encrypt(server, nullptr);
  const std::set<CurvePublicKey> none;
  nobody.allow_only(none);
  EXPECT_THAT(attack(nobody, false),
              ElementsAre("refuses a client with a key that allowed_client_keys lists"));
  EXPECT_THAT(attack(ConnectionAuthorizer(), true),
              ElementsAre("admits a client that does not encrypt",
                          "admits a client that does not encrypt, with an empty ticket",
                          "refuses a client with an unknown key"));
}

}  // namespace
}  // namespace lightq::broker
