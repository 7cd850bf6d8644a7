/// Tests of printing the messages of a log.
#include "client/message_template.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lightq::cli {
namespace {

std::string formatted(std::string_view pattern, std::string_view payload = "hi") {
  const auto made = MessageTemplate::parse(pattern);
  if (!made) return "(refused)";
  std::string text;
  made->append(text, {{42}, {1'700'000'000'123'456}, payload});
  return text;
}

TEST(MessageTemplate, PutsThePartsOfAMessageIntoAPattern) {
  EXPECT_EQ(formatted("%o %T %s [%p] %x%%\\n"), "42 1700000000123456 2 [hi] 6869%\n");
  EXPECT_EQ(formatted("%t"), "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(formatted("%p\\0\\t\\\\", "a"), std::string("a\0\t\\", 4));
}

TEST(MessageTemplate, KnowsTheWords) {
  EXPECT_EQ(formatted("raw", "a\xff"), "a\xff\n");
  EXPECT_EQ(formatted("hex", "a\xff"), "61ff\n");
  EXPECT_EQ(formatted("text", "a"), "42\t2023-11-14T22:13:20.123456Z\t1\ta\n");
  EXPECT_EQ(formatted("json", "\"a\""),
            "{\"offset\":42,\"time\":\"2023-11-14T22:13:20.123456Z\",\"time_us\":1700000000123456,\"size\":3,"
            "\"payload\":\"\\\"a\\\"\"}\n");
  EXPECT_NE(formatted("json", "\xff").find("\"payload_base64\":\"/w==\""), std::string::npos);
}

TEST(MessageTemplate, ShowsUnprintableCharacters) {
  EXPECT_EQ(formatted("%e", "a\n\t\\\x1b[2J"), "a\\n\\t\\\\\\x1b[2J");
  EXPECT_EQ(formatted("%e", "Grüße"), "Grüße");
  EXPECT_EQ(formatted("%e", "\xff\xc3"), "\\xff\\xc3");
}

TEST(MessageTemplate, ShowsKeyAndHeaders) {
  const Header headers[] = {{"kind", "json"}, {"a,b", "c=d\n"}};
  const Attributes attributes{.key = "te\ta", .headers = headers};
  const AttributeKinds kinds(attributes);
  std::vector<std::byte> bytes(attributes_bytes(kinds, attributes));
  write_attributes(bytes.data(), kinds, attributes);
  std::string text;
  MessageTemplate::parse("%k|%h")->append(text,
                                          {{1}, {2}, "p", AttributesView::trusted(kinds, bytes.data())});
  EXPECT_EQ(text, "te\\ta|kind=json,a\\,b=c\\=d\\n");
  EXPECT_EQ(formatted("%k|%h"), "|");
}

TEST(MessageTemplate, RefusesUnknownPlaceholders) {
  for (const char* pattern : {"", "smoke", "%", "%q", "%o\\", "%o\\q", "no place"})
    EXPECT_EQ(formatted(pattern), "(refused)") << pattern;
}

TEST(MessageTemplate, FormatsTimesFarFromNow) {
  EXPECT_EQ(format_time({0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(format_time({-1}), "1969-12-31T23:59:59.999999Z");
  for (const std::int64_t us : {INT64_MIN, INT64_MAX}) EXPECT_FALSE(format_time({us}).empty());
}

}  // namespace
}  // namespace lightq::cli
