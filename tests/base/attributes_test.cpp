/// Tests of the keys, headers and times that precede a message's payload.
#include <lightq/base/attributes.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <lightq/base/batch.hpp>

#include "support/random.hpp"

namespace lightq {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::vector<std::byte> written(AttributeKinds kinds, const Attributes& attributes, std::string_view payload) {
  std::vector<std::byte> record(attributes_bytes(kinds, attributes) + payload.size());
  std::byte* const end = write_attributes(record.data(), kinds, attributes);
  std::ranges::copy(as_byte_view(payload), end);
  return record;
}

Pairs pairs_of(const AttributesView& view) {
  Pairs pairs;
  for (const Header header : view.headers()) pairs.emplace_back(header.name, header.value);
  return pairs;
}

class EachSetOfKinds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Attributes, EachSetOfKinds, testing::Range(0, 16));

TEST_P(EachSetOfKinds, AreReadAsTheyWereWritten) {
  const AttributeKinds kinds(static_cast<std::uint16_t>(GetParam()));
  const Header headers[] = {{"kind", "json"}, {"empty", ""}, {"kind", "again"}};
  Attributes attributes;
  if (kinds.has(AttributeKinds::keys)) attributes.key = "tea";
  if (kinds.has(AttributeKinds::headers)) attributes.headers = headers;
  if (kinds.has(AttributeKinds::times)) attributes.time = {-5};
  if (kinds.has(AttributeKinds::dues)) attributes.delay = std::chrono::seconds(3);
  ASSERT_EQ(kinds, AttributeKinds(attributes));
  const auto record = written(kinds, attributes, "payload");
  const auto bytes = AttributesView::measure(kinds, record);
  ASSERT_TRUE(bytes.has_value());
  const AttributesView view = AttributesView::trusted(kinds, record.data());
  EXPECT_EQ(*bytes, view.bytes());
  EXPECT_EQ(as_text(payload_of(kinds, record)), "payload");
  EXPECT_EQ(view.key(), attributes.key);
  EXPECT_EQ(view.time(), attributes.time);
  EXPECT_EQ(view.due(), kinds.has(AttributeKinds::dues) ? -3'000'000 : 0);
  EXPECT_EQ(view.headers().size(), attributes.headers.size());
  EXPECT_EQ(pairs_of(view).size(), attributes.headers.size());
  if (!attributes.headers.empty()) {
    EXPECT_EQ(pairs_of(view), (Pairs{{"kind", "json"}, {"empty", ""}, {"kind", "again"}}));
    EXPECT_EQ(view.header("kind"), "json") << "the first";
    EXPECT_EQ(view.header("empty"), "");
  }
  EXPECT_EQ(view.header("none"), std::nullopt);
}

TEST_P(EachSetOfKinds, StandEmptyAmongOthersThatHaveThem) {
  const AttributeKinds kinds(static_cast<std::uint16_t>(GetParam()));
  const auto record = written(kinds, {}, "p");
  ASSERT_TRUE(AttributesView::measure(kinds, record).has_value());
  const AttributesView view = AttributesView::trusted(kinds, record.data());
  EXPECT_TRUE(view.key().empty() && view.headers().empty() && view.time() == Timestamp{} && view.due() == 0);
  EXPECT_EQ(as_text(payload_of(kinds, record)), "p");
}

TEST_P(EachSetOfKinds, AreRefusedWhereverTheyEndTooEarly) {
  const AttributeKinds kinds(static_cast<std::uint16_t>(GetParam()));
  const Header headers[] = {{"kind", "json"}, {"n", "v"}};
  Attributes attributes{.key = "key", .headers = headers, .time = {1}, .deliver_at = {2}};
  if (!kinds.has(AttributeKinds::dues)) attributes.deliver_at = {};
  if (!kinds.has(AttributeKinds::keys)) attributes.key = {};
  if (!kinds.has(AttributeKinds::headers)) attributes.headers = {};
  if (!kinds.has(AttributeKinds::times)) attributes.time = {};
  const auto record = written(kinds, attributes, "");
  for (std::size_t bytes = 0; bytes < record.size(); ++bytes)
    EXPECT_EQ(AttributesView::measure(kinds, ByteView(record).first(bytes)), std::nullopt) << bytes;
  EXPECT_EQ(AttributesView::measure(kinds, record), record.size());
}

TEST(Attributes, AreRefusedBeyondTheirLimits) {
  const AttributeKinds key(AttributeKinds::keys);
  const AttributeKinds headers(AttributeKinds::headers);
  const std::string longest(limits::key_bytes_max, 'k');
  EXPECT_TRUE(AttributesView::measure(key, written(key, {.key = longest}, "")));
  EXPECT_FALSE(AttributesView::measure(key, written(key, {.key = longest + "k"}, "")));

  std::vector<Header> many(limits::headers_max, Header{"n", "v"});
  EXPECT_TRUE(AttributesView::measure(headers, written(headers, {.headers = many}, "")));
  many.push_back({"n", "v"});
  EXPECT_FALSE(AttributesView::measure(headers, written(headers, {.headers = many}, "")));

  const std::string name(limits::header_name_bytes_max, 'n');
  const Header named[] = {{name, ""}};
  EXPECT_TRUE(AttributesView::measure(headers, written(headers, {.headers = named}, "")));
  const std::string longer = name + "n";
  const Header too_long[] = {{longer, ""}};
  EXPECT_FALSE(AttributesView::measure(headers, written(headers, {.headers = too_long}, "")));
  const Header nameless[] = {{"", "v"}};
  EXPECT_FALSE(AttributesView::measure(headers, written(headers, {.headers = nameless}, "")));

  const std::size_t around = 2 + 2 + 1 + 2;  // header count, name length, value length, name
  const std::string value(limits::attributes_bytes_max - around, 'v');
  const Header large[] = {{"n", value}};
  EXPECT_TRUE(AttributesView::measure(headers, written(headers, {.headers = large}, "payload")));
  const std::string value_too_long = value + "v";
  const Header too_large[] = {{"n", value_too_long}};
  EXPECT_FALSE(AttributesView::measure(headers, written(headers, {.headers = too_large}, "payload")));
}

TEST(Attributes, ReportTheLimitThatTheyExceed) {
  const std::string key(limits::key_bytes_max + 1, 'k');
  EXPECT_EQ((Attributes{.key = key}).check().error().code, ErrorCode::too_large);
  EXPECT_TRUE((Attributes{.key = std::string_view(key).substr(1)}).check());
  const std::vector<Header> many(limits::headers_max + 1, Header{"n", "v"});
  EXPECT_EQ((Attributes{.headers = many}).check().error().code, ErrorCode::too_large);
  EXPECT_TRUE((Attributes{.headers = std::span(many).subspan(1)}).check());
  const Header nameless[] = {{"", "v"}};
  EXPECT_EQ((Attributes{.headers = nameless}).check().error().code, ErrorCode::invalid_argument);
  const std::string value(limits::attributes_bytes_max, 'v');
  const Header large[] = {{"n", value}};
  EXPECT_EQ((Attributes{.headers = large}).check().error().code, ErrorCode::too_large);
  EXPECT_TRUE(Attributes{}.check());
}

TEST(Attributes, AttributesOfAnyBytesAreMeasuredWithinTheirBatch) {
  test::Random random(1);
  for (int round = 0; round < 200'000; ++round) {
    std::vector<std::byte> record(random.below(40));
    // Small values, so that some of the lengths are valid.
    for (auto& byte : record) byte = static_cast<std::byte>(random.below(2) == 0 ? 0 : random.below(6));
    const AttributeKinds kinds(static_cast<std::uint16_t>(random.below(16)));
    const auto bytes = AttributesView::measure(kinds, record);
    if (!bytes) continue;
    ASSERT_LE(*bytes, record.size());
    ASSERT_EQ(*bytes, AttributesView::trusted(kinds, record.data()).bytes());
  }
}

TEST(BatchWithAttributes, ReturnsEachMessageWithItsAttributes) {
  BatchBuilder builder;
  const Header headers[] = {{"kind", "json"}};
  builder.add(as_byte_view("one"), {.key = "tea", .headers = headers});
  builder.add(as_byte_view("two"), Attributes{});
  builder.add(as_byte_view(""), {.key = "coffee"});
  EXPECT_EQ(builder.message_bytes(), builder.records().size() - 3 * record_bytes(0));
  const auto batch = builder.finish({7, 1, 2});
  ASSERT_EQ(BatchView::check_produced(batch).fault, std::nullopt);
  stamp_batch(batch, Offset{5}, Timestamp{1}, 1);
  ASSERT_EQ(BatchView::check(batch), std::nullopt);
  const BatchView view = BatchView::trusted(batch.data());
  EXPECT_EQ(view.kinds(), AttributeKinds(AttributeKinds::keys | AttributeKinds::headers));
  EXPECT_EQ(view.message_bytes(), builder.message_bytes());
  auto record = view.records();
  EXPECT_EQ(as_text(record.payload()), "one");
  EXPECT_EQ(record.attributes().key(), "tea");
  EXPECT_EQ(record.attributes().header("kind"), "json");
  record.next();
  EXPECT_EQ(as_text(record.payload()), "two");
  EXPECT_TRUE(record.attributes().key().empty() && record.attributes().headers().empty());
  record.next();
  EXPECT_EQ(record.payload().size(), 0U);
  EXPECT_EQ(record.attributes().key(), "coffee");
  record.next();
  EXPECT_TRUE(record.done());
  builder.clear();
  EXPECT_FALSE(builder.kinds().any());
}

TEST(BatchWithAttributes, IsInvalidIfOneMessageLacksThem) {
  BatchBuilder builder;
  builder.add(as_byte_view("a payload"));
  const auto batch = builder.finish();
  for (std::uint16_t flags = 0; flags < 16; ++flags) {
    store_little_endian(batch.data() + batch_layout::flags, flags);
    store_little_endian(batch.data() + batch_layout::body_crc, batch_body_crc(batch));
    const auto fault = BatchView::check_produced(batch).fault;
    const auto expected = flags == 0  ? std::nullopt
                          : flags < 8 ? std::optional(BatchFault::bad_records)
                                      : std::optional(BatchFault::bad_version);
    // Any eight bytes are a valid time.
    EXPECT_EQ(fault, flags == AttributeKinds::times ? std::nullopt : expected) << flags;
  }
}

TEST(Attributes, ATimeToLiveIsTheFirstHeader) {
  const Header other{"kind", "json"};
  const Attributes attributes{.headers = {&other, 1}, .ttl = std::chrono::milliseconds(60'000)};
  ASSERT_TRUE(attributes.check_for_producer().ok());
  const AttributeKinds kinds(attributes);
  EXPECT_EQ(kinds, AttributeKinds(AttributeKinds::headers));
  std::vector<std::byte> record(attributes_bytes(kinds, attributes));
  EXPECT_EQ(write_attributes(record.data(), kinds, attributes), record.data() + record.size());
  EXPECT_EQ(AttributesView::measure(kinds, record), record.size());
  const AttributesView view = AttributesView::trusted(kinds, record.data());
  std::vector<Header> headers;
  for (const Header header : view.headers()) headers.push_back(header);
  EXPECT_EQ(headers, (std::vector<Header>{{"lightq-ttl-ms", "60000"}, other}));
}

TEST(Attributes, ATimeToLiveHasLimits) {
  using std::chrono::milliseconds;
  EXPECT_TRUE((Attributes{.ttl = milliseconds(limits::ttl_ms_max)}.check().ok()));
  EXPECT_FALSE((Attributes{.ttl = milliseconds(limits::ttl_ms_max + 1)}.check().ok()));
  EXPECT_FALSE((Attributes{.ttl = milliseconds(-1)}.check().ok()));
  const Header given{"lightq-ttl-ms", "5"};
  EXPECT_TRUE((Attributes{.headers = {&given, 1}}.check_for_producer().ok()));
  EXPECT_FALSE((Attributes{.headers = {&given, 1}, .ttl = milliseconds(5)}.check_for_producer().ok()));
  for (const std::string_view wrong :
       {"", "0", "05", "+5", "5 ", "5.0", "x", "315619200001", "9999999999999"}) {
    const Header header{"lightq-ttl-ms", wrong};
    EXPECT_FALSE((Attributes{.headers = {&header, 1}}.check_for_producer().ok())) << wrong;
    EXPECT_FALSE(ttl_in(wrong)) << wrong;
  }
  EXPECT_EQ(ttl_in("315619200000"), milliseconds(limits::ttl_ms_max));
  const std::vector<Header> many(limits::headers_max, Header{"n", ""});
  EXPECT_TRUE((Attributes{.headers = many}.check().ok()));
  EXPECT_FALSE((Attributes{.headers = many, .ttl = milliseconds(5)}.check().ok()));

TEST(BatchWithDueTimes, IsInvalidUnlessDueTimesArePermitted) {
  BatchBuilder builder;
  builder.add(as_byte_view("late"), {.key = "tea", .deliver_at = {7}});
  builder.add(as_byte_view("soon"), {.delay = std::chrono::milliseconds(1)});
  builder.add(as_byte_view("now"), Attributes{});
  ASSERT_TRUE(builder.is_sound());
  const auto batch = builder.finish();
  EXPECT_EQ(BatchView::check_produced(batch).fault, BatchFault::bad_version);
  EXPECT_EQ(BatchView::check_produced(batch, AttributeKinds(AttributeKinds::known)).fault, std::nullopt);
  std::vector<std::int64_t> dues;
  for (auto record = BatchView::trusted(batch.data()).records(); !record.done(); record.next())
    dues.push_back(record.attributes().due());
  EXPECT_EQ(dues, (std::vector<std::int64_t>{7, -1000, 0}));
}

TEST(BatchWithoutDueTimes, TakesNoDelay) {
  BatchBuilder builder;
  builder.add(as_byte_view("now"), {.key = "tea"});
  builder.add(as_byte_view("late"), {.delay = std::chrono::hours(1)});
  EXPECT_FALSE(builder.is_sound());
  EXPECT_EQ(builder.record_count(), 1U);
}

TEST(Attributes, ADelayAndADueTimeHaveLimits) {
  const auto code = [](const Attributes& attributes) { return attributes.check().error().code; };
  using std::chrono::microseconds;
  EXPECT_TRUE((Attributes{.delay = microseconds(limits::delay_us_max)}).check());
  EXPECT_EQ(code({.delay = microseconds(limits::delay_us_max + 1)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.delay = microseconds(-1)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.deliver_at = {-1}}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.delay = microseconds(1), .deliver_at = {1}}), ErrorCode::invalid_argument);
}

TEST(Attributes, AnIdIsTheFirstHeader) {
  const Header headers[] = {{"kind", "json"}};
  const Attributes attributes{.headers = headers, .id = "order 7"};
  EXPECT_EQ(AttributeKinds(attributes), AttributeKinds(AttributeKinds::headers));
  const auto record = written(AttributeKinds(attributes), attributes, "p");
  ASSERT_EQ(AttributesView::measure(AttributeKinds(attributes), record), record.size() - 1);
  const AttributesView view = AttributesView::trusted(AttributeKinds(attributes), record.data());
  EXPECT_EQ(view.id(), "order 7");
  EXPECT_EQ(pairs_of(view), (Pairs{{"lightq-id", "order 7"}, {"kind", "json"}}));
  const auto without = written(AttributeKinds(AttributeKinds::headers), {.headers = headers}, "p");
  EXPECT_EQ(AttributesView::trusted(AttributeKinds(AttributeKinds::headers), without.data()).id(), "");
}

TEST(Attributes, AnIdIsGivenOnceAndWithinItsLimit) {
  const std::string longest(limits::message_id_bytes_max, 'i');
  const std::string longer = longest + "i";
  EXPECT_TRUE(Attributes{.id = longest}.check_for_producer());
  EXPECT_EQ(Attributes{.id = longer}.check_for_producer().error().code, ErrorCode::too_large);
  const auto checked = [](std::string_view value, std::string_view id) {
    const Header headers[] = {{id_header_name, value}};
    return Attributes{.headers = headers, .id = id}.check_for_producer();
  };
  EXPECT_TRUE(checked(longest, ""));
  EXPECT_EQ(checked(longer, "").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(checked("", "").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(checked("7", "7").error().code, ErrorCode::invalid_argument);
  const Header twice[] = {{id_header_name, "7"}, {id_header_name, "7"}};
  EXPECT_EQ(Attributes{.headers = twice}.check_for_producer().error().code, ErrorCode::invalid_argument);
  const std::vector<Header> many(limits::headers_max, Header{"n", "v"});
  EXPECT_EQ((Attributes{.headers = many, .id = "7"}).check().error().code, ErrorCode::too_large);
}

TEST(DueTime, IsAbsoluteOrCountsFromTheAppendTime) {
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(due_time(0, {100}), Timestamp{0});
  EXPECT_EQ(due_time(7, {100}), Timestamp{7});
  EXPECT_EQ(due_time(-7, {100}), Timestamp{107});
  EXPECT_EQ(due_time(-7, {-100}), Timestamp{-93});
  EXPECT_EQ(due_time(-greatest, {1}), Timestamp{greatest});
  EXPECT_EQ(due_time(std::numeric_limits<std::int64_t>::min(), {0}), Timestamp{greatest});
}

TEST(DueTime, IsAtMostTenYearsAhead) {
  constexpr std::int64_t most = limits::delay_us_max;
  constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(is_due_too_far(0, {0}));
  EXPECT_FALSE(is_due_too_far(-most, {5}));
  EXPECT_TRUE(is_due_too_far(-most - 1, {5}));
  EXPECT_TRUE(is_due_too_far(std::numeric_limits<std::int64_t>::min(), {5}));
  EXPECT_FALSE(is_due_too_far(most + 5, {5}));
  EXPECT_TRUE(is_due_too_far(most + 6, {5}));
  EXPECT_FALSE(is_due_too_far(most, {-5})) << "a clock before 1970 shortens no limit";
  EXPECT_TRUE(is_due_too_far(greatest, {5}));
}

}  // namespace
}  // namespace lightq
