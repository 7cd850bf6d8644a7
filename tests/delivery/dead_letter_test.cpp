/// Tests of dead letters: the message is unchanged, its death is told, and earlier deaths are counted.
#include "delivery/letters/dead_letter.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <lightq/base/compression.hpp>

#include "admission/memory_reserve.hpp"
#include "delivery/batches/unpacked.hpp"
#include "support/no_memory.hpp"

namespace lightq::broker {
namespace {

using testing::ElementsAre;
using testing::Pair;

/// A message in a batch of one.
class PackedMessage {
 public:
  PackedMessage(const std::string& payload, const Attributes& attributes) {
    batch_.add(as_byte_view(payload), attributes);
    view_ = BatchView::trusted(batch_.finish().data());
  }
  explicit PackedMessage(const DeadLetter& letter) {
    letter.add_to(batch_);
    view_ = BatchView::trusted(batch_.finish().data());
  }
  [[nodiscard]] AttributesView attributes() const { return view_.records().attributes(); }
  [[nodiscard]] ByteView payload() const { return view_.records().payload(); }
  [[nodiscard]] std::size_t message_bytes() const { return view_.records().message().size(); }
  [[nodiscard]] const BatchView& batch() const { return view_; }
  [[nodiscard]] std::map<std::string, std::string> headers() const {
    std::map<std::string, std::string> headers;
    for (const Header header : attributes().headers()) headers.emplace(header.name, header.value);
    return headers;
  }
  [[nodiscard]] std::string header(const std::string& name) const {
    return std::string(attributes().header(name).value_or("(none)"));
  }

 private:
  BatchBuilder batch_;
  BatchView view_;
};

const DeathAccount some_death{.cause = DeathCause::rejected,
                              .topic = "orders",
                              .group = "billing",
                              .incarnation = 77,
                              .offset = {1234},
                              .attempts = 3,
                              .first_failure_ms = 1'700'000'000'000,
                              .last_failure_ms = 1'700'000'060'000,
                              .reason = "no such customer"};

PackedMessage died(const PackedMessage& message, const DeathAccount& death) {
  return PackedMessage(DeadLetter::of(message.attributes(), message.payload(), death).value_or_throw());
}

TEST(DeadLetterTest, KeyHeadersTimeAndPayloadAreThoseOfTheMessage) {
  const std::vector<Header> headers = {{"tenant", "a"}, {"tenant", "b"}, {"empty", ""}};
  const PackedMessage message("payload", {.key = "key", .headers = headers, .time = {5}});
  const PackedMessage letter = died(message, some_death);
  EXPECT_EQ(as_text(letter.payload()), "payload");
  EXPECT_EQ(letter.attributes().key(), "key");
  EXPECT_EQ(letter.attributes().time(), Timestamp{5});
  std::vector<Header> first;
  for (const Header header : letter.attributes().headers()) {
    if (first.size() < headers.size()) first.push_back(header);
  }
  EXPECT_EQ(first, headers);
  EXPECT_EQ(BatchView::check_produced(letter.batch().bytes()).fault, std::nullopt);
}

TEST(DeadLetterTest, AMessageIsTheSameIfAllButTheHeadersOfDeathsIsEqual) {
  const std::vector<Header> headers = {{"tenant", "a"}, {"empty", ""}};
  const PackedMessage message("payload", {.key = "key", .headers = headers, .time = {5}});
  const auto original_of = [](const PackedMessage& letter) {
    return DeadLetter::original_of(letter.attributes(), letter.payload()).value_or_throw();
  };
  const DeadLetter original = original_of(died(message, some_death));
  const auto is_same = [&](const PackedMessage& other) {
    return original.is_same(other.attributes(), other.payload());
  };
  EXPECT_TRUE(is_same(message));
  EXPECT_TRUE(is_same(died(message, some_death)));
  EXPECT_TRUE(original_of(died(died(message, some_death), some_death))
                  .is_same(message.attributes(), message.payload()));
  const std::vector<Header> fewer = {headers[0]};
  const std::vector<Header> more = {headers[0], headers[1], headers[0]};
  const std::vector<Header> others = {headers[0], {"empty", "no"}};
  for (const auto& changed : {fewer, more, others})
    EXPECT_FALSE(is_same(PackedMessage("payload", {.key = "key", .headers = changed, .time = {5}})));
  EXPECT_FALSE(is_same(PackedMessage("payload!", {.key = "key", .headers = headers, .time = {5}})));
  EXPECT_FALSE(is_same(PackedMessage("payload", {.key = "other", .headers = headers, .time = {5}})));
  EXPECT_FALSE(is_same(PackedMessage("payload", {.key = "key", .headers = headers, .time = {6}})));
}

TEST(DeadLetterTest, AMessageCanForgetItsTimeToLive) {
  const std::vector<Header> headers = {{"tenant", "a"}, {"lightq-ttl-ms", "50"}, {"empty", ""}};
  const PackedMessage letter = died(PackedMessage("m", {.headers = headers}), some_death);
  DeadLetter original = DeadLetter::original_of(letter.attributes(), letter.payload()).value_or_throw();
  original.forget_ttl();
  EXPECT_THAT(PackedMessage(original).headers(), ElementsAre(Pair("empty", ""), Pair("tenant", "a")));
}

TEST(DeadLetterTest, AMessageWithoutAttributesStaysWithoutKeyAndTime) {
  const PackedMessage letter = died(PackedMessage("", {}), some_death);
  EXPECT_EQ(letter.attributes().key(), "");
  EXPECT_EQ(letter.attributes().time(), Timestamp{});
  EXPECT_TRUE(letter.payload().empty());
}

TEST(DeadLetterTest, TheHeadersTellTheDeath) {
  const PackedMessage letter = died(PackedMessage("m", {}), some_death);
  EXPECT_THAT(
      letter.headers(),
      ElementsAre(Pair("lightq-dead-attempts", "3"), Pair("lightq-dead-cause", "rejected"),
                  Pair("lightq-dead-count", "1"), Pair("lightq-dead-first-failure-ms", "1700000000000"),
                  Pair("lightq-dead-group", "billing"), Pair("lightq-dead-incarnation", "77"),
                  Pair("lightq-dead-last-failure-ms", "1700000060000"), Pair("lightq-dead-offset", "1234"),
                  Pair("lightq-dead-reason", "no such customer"), Pair("lightq-dead-topic", "orders")));
  EXPECT_EQ(last_death_of(letter.attributes()), some_death);
}

TEST(DeadLetterTest, TheMessageIsMadeAgainOfItsLetter) {
  const std::vector<Header> headers = {{"tenant", "a"}, {"tenant", "b"}};
  const PackedMessage message("payload", {.key = "key", .headers = headers, .time = {5}});
  const auto original_of = [](const PackedMessage& letter) {
    return PackedMessage(DeadLetter::original_of(letter.attributes(), letter.payload()).value_or_throw());
  };
  const PackedMessage letter = died(message, some_death);
  const PackedMessage again = original_of(letter);
  EXPECT_EQ(as_text(again.payload()), "payload");
  EXPECT_EQ(again.attributes().key(), "key");
  EXPECT_EQ(again.attributes().time(), Timestamp{5});
  EXPECT_THAT(again.headers(), ElementsAre(Pair("tenant", "a")));
  EXPECT_EQ(again.attributes().headers().size(), 2U);
  const PackedMessage twice = died(letter, {.topic = "orders.dead", .group = "g", .reason = "again"});
  EXPECT_EQ(original_of(twice).headers(), letter.headers());
  const PackedMessage thrice = died(twice, {.topic = "graveyard", .group = "g"});
  EXPECT_EQ(original_of(thrice).header("lightq-dead-count"), "2");
  EXPECT_EQ(original_of(thrice).header("lightq-dead-topic"), "orders");
}

TEST(DeadLetterTest, WhatIsNotKnownHasNoHeader) {
  const DeathAccount unknown{.topic = "t", .group = "g"};
  const PackedMessage letter = died(PackedMessage("m", {}), unknown);
  EXPECT_EQ(letter.header("lightq-dead-reason"), "(none)");
  EXPECT_EQ(letter.header("lightq-dead-first-failure-ms"), "(none)");
  EXPECT_EQ(letter.header("lightq-dead-cause"), "attempts");
  EXPECT_EQ(last_death_of(letter.attributes()), unknown);
}

TEST(DeadLetterTest, TheFirstAndTheLastDeathAreKeptAndAllAreCounted) {
  const Header own{"tenant", "a"};
  const PackedMessage message("m", {.headers = {&own, 1}});
  auto letter = std::make_unique<PackedMessage>(
      DeadLetter::of(message.attributes(), message.payload(), some_death).value_or_throw());
  std::size_t headers = 0;
  for (int deaths = 2; deaths < 30; ++deaths) {
    const DeathAccount next{.topic = "dlq" + std::to_string(deaths), .group = "g", .reason = "again"};
    letter = std::make_unique<PackedMessage>(
        DeadLetter::of(letter->attributes(), letter->payload(), next).value_or_throw());
    EXPECT_EQ(letter->header("lightq-dead-count"), std::to_string(deaths));
    EXPECT_EQ(letter->header("lightq-dead-topic"), next.topic);
    EXPECT_EQ(letter->header("lightq-dead-origin-topic"), "orders");
    EXPECT_EQ(letter->header("lightq-dead-origin-offset"), "1234");
    EXPECT_EQ(letter->header("lightq-dead-origin-reason"), "no such customer");
    EXPECT_EQ(letter->header("tenant"), "a");
    if (deaths > 2) {
      EXPECT_EQ(letter->attributes().headers().size(), headers) << "they must not grow";
    }
    headers = letter->attributes().headers().size();
  }
}

TEST(DeadLetterTest, AnOriginWithALongValueIsCut) {
  const std::string long_value(5000, 'x');
  const std::vector<Header> forged = {{"lightq-dead-cause", "attempts"}, {"lightq-dead-reason", long_value}};
  const PackedMessage letter = died(PackedMessage("m", {.headers = forged}), some_death);
  EXPECT_EQ(letter.header("lightq-dead-origin-reason").size(), 512U);
  EXPECT_EQ(letter.header("lightq-dead-count"), "2");
}

TEST(DeadLetterTest, AttributesBeyondTheirLimitsAreRefused) {
  std::vector<Header> many(limits::headers_max, Header{"name", "value"});
  const PackedMessage message("m", {.headers = many});
  const auto letter = DeadLetter::of(message.attributes(), message.payload(), some_death);
  ASSERT_FALSE(letter.ok());
  EXPECT_EQ(letter.error().code, ErrorCode::too_large);
}

TEST(DeadLetterTest, TheLengthIsThatOfTheMessage) {
  const PackedMessage message("payload", {.key = "key"});
  const auto letter = DeadLetter::of(message.attributes(), message.payload(), some_death).value_or_throw();
  EXPECT_EQ(letter.message_bytes(), PackedMessage(letter).message_bytes());
}

TEST(DeadLetterTest, OnlyLettersHaveADeath) {
  const std::vector<Header> broken = {{"lightq-dead-cause", "attempts"}, {"lightq-dead-offset", "-1"}};
  EXPECT_EQ(last_death_of(PackedMessage("m", {.headers = broken}).attributes()), std::nullopt);
  EXPECT_EQ(last_death_of(PackedMessage("m", {.key = "k"}).attributes()), std::nullopt);
}

TEST(DeadLetterTest, ReservedHeadersAreFoundInAnyMessageOfABatch) {
  BatchBuilder batch;
  const Header harmless{"lightq-dea", "x"};
  batch.add(as_byte_view("one"), {.headers = {&harmless, 1}});
  EXPECT_FALSE(header_content(BatchView::trusted(batch.finish().data())).has_dead_headers);
  const Header reserved{"lightq-dead-", "x"};
  batch.add(as_byte_view("two"), {.headers = {&reserved, 1}});
  EXPECT_TRUE(header_content(BatchView::trusted(batch.finish().data())).has_dead_headers);
  EXPECT_FALSE(
      header_content(PackedMessage("lightq-dead-x", {.key = "lightq-dead-x"}).batch()).has_dead_headers);
}

/// Returns a compressed batch with a message that has this header.
std::vector<std::byte> packed_with(std::string_view name) {
  const Header header{name, "x"};
  BatchBuilder batch;
  batch.add(as_byte_view(std::string(50'000, 'a')), {.headers = {&header, 1}});
  Compressor compressor;
  batch.replace_records(Codec::zstd, compressor.compress(Codec::zstd, batch.records()).value());
  const auto bytes = batch.finish();
  return {bytes.begin(), bytes.end()};
}

TEST(DeadLetterTest, ReservedHeadersAreFoundInACompressedBatch) {
  const auto harmless = packed_with("trace");
  const auto reserved = packed_with("lightq-dead-cause");
  const BatchView batch = BatchView::trusted(harmless.data());
  ASSERT_TRUE(batch.is_compressed());
  ASSERT_TRUE(content_packed_in(batch).has_value());
  EXPECT_FALSE(content_packed_in(batch)->has_dead_headers);
  EXPECT_LT(50'000U, content_packed_in(batch)->longest_message_bytes);
  EXPECT_TRUE(content_packed_in(BatchView::trusted(reserved.data()))->has_dead_headers);
}

TEST(DeadLetterTest, WithoutMemoryNoBatchPassesUnchecked) {
  if (!test::NoMemory::is_possible) GTEST_SKIP() << "sanitizers need address space without end";
  const auto bytes = packed_with("lightq-dead-cause");
  const auto check = [&] {  // on a thread without a buffer
    const FallibleAllocations fallible;
    const test::NoMemory none;
    EXPECT_THROW(static_cast<void>(content_packed_in(BatchView::trusted(bytes.data()))), std::bad_alloc);
  };
  std::jthread(check).join();
}

}  // namespace
}  // namespace lightq::broker
