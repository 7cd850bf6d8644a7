/// Tests of control/catalogue/registration_check: which client keys of earlier runs stay registered after a
/// start.
#include "control/catalogue/registration_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "control/catalogue_room.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t user_ann = 4711;

CurvePublicKey public_key(std::uint8_t byte) {
  CurvePublicKey key{};
  key.fill(std::byte{byte});
  return key;
}

/// Starts of one broker, each with a ticket key and a password.
class RegistrationCheck : public ::testing::Test {
 protected:
  std::uint32_t start(const std::string& password, std::uint8_t ticket_key = 1) {
    catalogue.reset();
    catalogue = room.open();
    TicketKey::Bytes bytes{};
    bytes.fill(std::byte{ticket_key});
    const TicketKey tickets(bytes);
    const auto generation =
        check_registrations(*catalogue, tickets, Secret(password), room.sink).value_or_throw();
    EXPECT_FALSE(catalogue->unflushed());
    return generation;
  }
  void register_keys(std::uint32_t admin_generation) {
    if (catalogue->state().topics().empty()) {
      topic = catalogue->add_topic(test::name("t"), {}, 0).value_or_throw().id;
    }
    const auto ends_ms = static_cast<std::uint64_t>(room.now_ms + 60'000);
    const Grant grant{topic, EndpointRole::pull};
    ASSERT_TRUE(catalogue->put_client_key({public_key(1), grant, ends_ms, {0, admin_generation}}).ok());
    ASSERT_TRUE(catalogue->put_client_key({public_key(2), grant, ends_ms, {user_ann, 1}}).ok());
  }
  [[nodiscard]] bool knows(std::uint8_t byte) const {
    return catalogue->state().client_key(public_key(byte), {topic, EndpointRole::pull}) != nullptr;
  }

  test::CatalogueRoom room;
  std::unique_ptr<Catalogue> catalogue;
  TopicId topic;
};

TEST_F(RegistrationCheck, UnchangedKeysEndNoRegistration) {
  const auto generation = start("a password");
  EXPECT_NE(generation, 0U);
  register_keys(generation);
  EXPECT_EQ(start("a password"), generation);
  EXPECT_TRUE(knows(1));
  EXPECT_TRUE(knows(2));
  EXPECT_TRUE(room.sink.lines.empty());
}

TEST_F(RegistrationCheck, ANewPasswordEndsTheAdministratorsKeysForGood) {
  const auto generation = start("a password");
  register_keys(generation);
  const auto other = start("another one");
  EXPECT_NE(other, generation);
  EXPECT_FALSE(knows(1));
  EXPECT_TRUE(knows(2)) << "a user's";
  EXPECT_THAT(room.sink.lines, ElementsAre(HasSubstr("dropped 1 registered client keys")));
  const auto back = start("a password");
  EXPECT_NE(back, generation) << "what was made under it before stays ended";
  EXPECT_FALSE(knows(1));
}

TEST_F(RegistrationCheck, AnotherTicketKeyEndsAllKeysForGood) {
  const auto generation = start("a password");
  register_keys(generation);
  EXPECT_EQ(start("a password", 2), generation);
  EXPECT_FALSE(knows(1));
  EXPECT_FALSE(knows(2));
  EXPECT_EQ(catalogue->state().client_key_count(), 0U);
  EXPECT_THAT(room.sink.lines, ElementsAre(HasSubstr("dropped 2 registered client keys")));
  start("a password", 1);
  EXPECT_FALSE(knows(2));
  register_keys(generation);
  start("a password", 1);
  EXPECT_TRUE(knows(2)) << "registered under the key that is there";
}

TEST_F(RegistrationCheck, KeysOfACatalogueWithoutTheirTicketKeyEnd) {
  catalogue = room.open();
  register_keys(0);
  start("a password");
  EXPECT_FALSE(knows(1));
  EXPECT_FALSE(knows(2));
}

TEST_F(RegistrationCheck, ACompactedCatalogueGivesTheSameResult) {
  const auto generation = start("a password");
  register_keys(generation);
  CatalogueState again;
  for (const auto& change : catalogue->state().snapshot()) again.apply(decode_change(encode(change)).value());
  EXPECT_EQ(again.client_keys_of(topic), catalogue->state().client_keys_of(topic));
  EXPECT_EQ(again.client_key_count(), 2U);
  EXPECT_EQ(again.ticket_key_id(), catalogue->state().ticket_key_id());
  EXPECT_EQ(again.administrator(), catalogue->state().administrator());
  EXPECT_LE(again.snapshot().size(), again.record_count());
}

TEST_F(RegistrationCheck, TheCatalogueHoldsNeitherThePasswordNorTheTicketKey) {
  start("a password of some length");
  for (const auto& change : catalogue->state().snapshot())
    EXPECT_EQ(encode(change).find("a password of some length"), std::string::npos);
  EXPECT_THAT(catalogue->state().administrator().argon2, HasSubstr("$argon2id$"));
}

TEST(RegistrationRecords, InvalidRecordsAreReported) {
  EXPECT_TRUE(decode_change(R"({"op":"ticket_key","key_id":"ab"})").ok());
  EXPECT_TRUE(decode_change(R"({"op":"administrator","generation":7,"argon2":"$argon2id$"})").ok());
  for (const char* const bad :
       {R"({"op":"ticket_key"})", R"({"op":"ticket_key","key_id":""})",
        R"({"op":"administrator","argon2":"x"})", R"({"op":"administrator","generation":0,"argon2":"x"})",
        R"({"op":"administrator","generation":4294967296,"argon2":"x"})",
        R"({"op":"administrator","generation":1})"})
    EXPECT_FALSE(decode_change(bad).ok()) << bad;
}

TEST(RegistrationRoom, KeysThatEndTooLateAreEvictedLikeExpiredOnes) {
  test::CatalogueRoom room;
  auto options = room.options();
  options.client_keys_per_topic_max = 2;
  options.client_key_lifetime_max = std::chrono::seconds(60);
  const auto catalogue = Catalogue::open(room.path(), options, room.sink).value_or_throw();
  const TopicId topic = catalogue->add_topic(test::name("a"), {}, 0)->id;
  const auto put = [&](std::uint8_t byte, std::int64_t ends_in_ms) {
    const auto ends_ms = static_cast<std::uint64_t>(room.now_ms + ends_in_ms);
    return catalogue->put_client_key({public_key(byte), {topic, EndpointRole::sub}, ends_ms, {}});
  };
  ASSERT_TRUE(put(1, 60'000).ok());
  ASSERT_TRUE(put(2, 31'536'000'000).ok()) << "made while the clock was ahead";
  ASSERT_TRUE(put(3, 60'000).ok());
  EXPECT_EQ(catalogue->state().client_key(public_key(2), {topic, EndpointRole::sub}), nullptr);
  EXPECT_FALSE(put(4, 60'000).ok());
}

}  // namespace
}  // namespace lightq::broker
