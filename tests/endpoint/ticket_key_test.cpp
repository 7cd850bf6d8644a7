/// Tests of tickets: the broker's key accepts valid tickets, and no others.
#include "access/ticket_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

namespace lightq::broker {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Timestamp now{1'800'000'000'000'000};
constexpr Grant grant{TopicId{7}, EndpointRole::pull};

TicketKey::Bytes key_bytes(int seed) {
  TicketKey::Bytes bytes{};
  std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(seed));
  return bytes;
}

class TicketKeyTest : public testing::Test {
 protected:
  [[nodiscard]] bool good(const std::string& id, const std::string& secret) const {
    return key.check(id, secret, now).grant.has_value();
  }
  const TicketKey key{key_bytes(1)};
  const protocol::Ticket ticket = key.issue(grant, 60s, now);
};

TEST_F(TicketKeyTest, ATicketPermitsItsGrantUntilItExpires) {
  EXPECT_EQ(key.check(ticket.id, ticket.secret.expose(), now).grant, grant);
  EXPECT_EQ(key.check(ticket.text().expose(), now).grant, grant);
  EXPECT_EQ(ticket.expires_ms, 1'800'000'060'000U);
  EXPECT_TRUE(key.check(ticket.text().expose(), Timestamp{now.us + 59'999'000}).grant.has_value());
  const auto late = key.check(ticket.text().expose(), Timestamp{now.us + 60'000'000});
  EXPECT_FALSE(late.grant.has_value());
  EXPECT_THAT(std::string(late.fault), HasSubstr("expired"));
}

TEST_F(TicketKeyTest, EachBitOfItCounts) {
  for (std::size_t at = 0; at < ticket.id.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string id = ticket.id;
      id[at] = static_cast<char>(id[at] ^ (1 << bit));
      EXPECT_FALSE(good(id, ticket.secret.expose())) << "bit " << bit << " of the id's byte " << at;
    }
  }
  for (std::size_t at = 0; at < ticket.secret.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string secret = ticket.secret.expose();
      secret[at] = static_cast<char>(secret[at] ^ (1 << bit));
      EXPECT_FALSE(good(ticket.id, secret)) << "bit " << bit << " of the secret's byte " << at;
    }
  }
  EXPECT_TRUE(good(ticket.id, ticket.secret.expose()));
}

TEST_F(TicketKeyTest, SoDoesItsLength) {
  EXPECT_FALSE(good("", ""));
  EXPECT_FALSE(good(ticket.id, ""));
  EXPECT_FALSE(good("", ticket.secret.expose()));
  EXPECT_FALSE(good(ticket.id, ticket.secret.expose().substr(1)));
  EXPECT_FALSE(good(ticket.id, ticket.secret.expose() + "0"));
  EXPECT_FALSE(good(ticket.id + "0", ticket.secret.expose()));
  EXPECT_FALSE(good(ticket.id.substr(2), ticket.secret.expose()));
  EXPECT_FALSE(key.check(ticket.id + ticket.secret.expose(), now).grant.has_value());
  EXPECT_FALSE(key.check(ticket.text().expose() + ".", now).grant.has_value());
  EXPECT_FALSE(key.check("", now).grant.has_value());
}

TEST_F(TicketKeyTest, ATicketOfAnotherKeyIsRefused) {
  const TicketKey other(key_bytes(2));
  const auto foreign = other.issue(grant, 60s, now);
  const auto verdict = key.check(foreign.text().expose(), now);
  EXPECT_FALSE(verdict.grant.has_value());
  EXPECT_THAT(std::string(verdict.fault), HasSubstr("did not issue"));
  const TicketKey same(key_bytes(1));
  EXPECT_EQ(same.check(ticket.text().expose(), now).grant, grant) << "the key is all that is needed";
}

TEST_F(TicketKeyTest, EachTicketIsUniqueAndHexadecimal) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(key.issue(grant, 60s, now).text().expose());
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(ticket.id.size(), 76U);
  EXPECT_EQ(ticket.secret.size(), 64U);
  EXPECT_EQ(ticket.text().expose().find_first_not_of("0123456789abcdef."), std::string::npos);
}

TEST_F(TicketKeyTest, ATicketThatExpiresTooLateIsRefused) {
  const TicketKey of_a_minute(key_bytes(1), 60s);
  const auto ends_in = [&](std::chrono::milliseconds lifetime) {
    return of_a_minute.check(of_a_minute.issue(grant, lifetime, now).text().expose(), now);
  };
  EXPECT_TRUE(ends_in(60s).grant.has_value());
  EXPECT_TRUE(ends_in(60s + ticket_clock_tolerance).grant.has_value()) << "the clock was set back a little";
  const auto later = ends_in(60s + ticket_clock_tolerance + 1ms);
  EXPECT_FALSE(later.grant.has_value());
  EXPECT_THAT(std::string(later.fault), HasSubstr("expires later"));
  // Issued while the clock was ten years ahead.
  const auto ahead = of_a_minute.issue(grant, 60s, Timestamp{now.us + 315'360'000'000'000});
  EXPECT_FALSE(of_a_minute.check(ahead.text().expose(), now).grant.has_value());
  EXPECT_FALSE(
      of_a_minute.check(of_a_minute.issue(grant, 60s, now).text().expose(), Timestamp{0}).grant.has_value())
      << "at the beginning of time";
  const std::chrono::milliseconds year(limits::ticket_ms_max);
  EXPECT_TRUE(key.check(key.issue(grant, year, now).text().expose(), now).grant.has_value())
      << "where a year may be";
}

TEST_F(TicketKeyTest, AKeysIdIsUniqueAndNoTicketsSecret) {
  EXPECT_EQ(key.id(), TicketKey(key_bytes(1)).id());
  EXPECT_NE(key.id(), TicketKey(key_bytes(2)).id());
  EXPECT_NE(key.id(), to_hex(key_bytes(1)));
  EXPECT_EQ(key.id().size(), 64U);
}

TEST(TicketClaims, DecodeToTheEncodedValues) {
  for (const auto role : {EndpointRole::produce, EndpointRole::pull, EndpointRole::sub}) {
    const TicketClaims claims{{TopicId{~std::uint64_t{0}}, role}, 123'456'789'012, {42, 7}, 99};
    EXPECT_EQ(decode_ticket_id(encode_ticket_id(claims)), claims);
  }
  std::string id = encode_ticket_id({});
  EXPECT_TRUE(decode_ticket_id(id).has_value());
  id[1] = '2';
  EXPECT_FALSE(decode_ticket_id(id).has_value()) << "of a later version";
  id = encode_ticket_id({});
  id[3] = '3';
  EXPECT_FALSE(decode_ticket_id(id).has_value()) << "of a role that there is not";
  EXPECT_FALSE(decode_ticket_id(encode_ticket_id({}).substr(1)).has_value());
  EXPECT_FALSE(decode_ticket_id("").has_value());
}

}  // namespace
}  // namespace lightq::broker
