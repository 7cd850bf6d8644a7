/// Tests of printing consumed messages.
#include "client/commands/message_format.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lightq::cli {
namespace {

std::string formatted(std::string_view payload, Format format) {
  std::string text;
  append_message(text, "t", payload, format);
  return text;
}

TEST(MessageFormat, PrintsRawBytesAndALineEnd) {
  EXPECT_EQ(formatted("a\xff", Format::raw), "a\xff\n");
}

TEST(MessageFormat, PrintsHexadecimalDigits) {
  EXPECT_EQ(formatted(std::string_view("\0\x1f\xff", 3), Format::hex), "001fff\n");
  EXPECT_EQ(formatted("", Format::hex), "\n");
}

TEST(MessageFormat, EscapesAllCharactersThatJsonRequires) {
  EXPECT_EQ(formatted("say \"hi\"\\\n\x01", Format::json),
            "{\"topic\":\"t\",\"payload\":\"say \\\"hi\\\"\\\\\\n\\u0001\"}\n");
  EXPECT_EQ(formatted("Grüße €", Format::json), "{\"topic\":\"t\",\"payload\":\"Grüße €\"}\n");
}

TEST(MessageFormat, UsesBase64ForBinaryPayloads) {
  EXPECT_EQ(formatted("\xff", Format::json), "{\"topic\":\"t\",\"payload_base64\":\"/w==\"}\n");
  EXPECT_EQ(formatted("\xff\xfe", Format::json), "{\"topic\":\"t\",\"payload_base64\":\"//4=\"}\n");
  EXPECT_EQ(formatted("\xff\xfe\xfd", Format::json), "{\"topic\":\"t\",\"payload_base64\":\"//79\"}\n");
  EXPECT_EQ(formatted("\xed\xa0\x80", Format::json), "{\"topic\":\"t\",\"payload_base64\":\"7aCA\"}\n");
  EXPECT_EQ(formatted("\xc0\x80", Format::json), "{\"topic\":\"t\",\"payload_base64\":\"wIA=\"}\n");
}

TEST(MessageFormat, WritesKeyHeadersAndTimeInJson) {
  const Header headers[] = {{"kind", "a \"b\""}, {"kind", "\xff"}};
  const Attributes attributes{.key = "tea", .headers = headers, .time = {17}};
  const AttributeKinds kinds(attributes);
  std::vector<std::byte> bytes(attributes_bytes(kinds, attributes));
  write_attributes(bytes.data(), kinds, attributes);
  const AttributesView view = AttributesView::trusted(kinds, bytes.data());
  std::string text;
  append_message(text, "t", "p", Format::json, view);
  EXPECT_EQ(
      text,
      "{\"topic\":\"t\",\"payload\":\"p\",\"key\":\"tea\",\"headers\":[{\"name\":\"kind\",\"value\":\"a "
      "\\\"b\\\"\"},{\"name\":\"kind\",\"value_base64\":\"/w==\"}],\"producer_time_us\":17}\n");
  text.clear();
  append_message(text, "t", "p", Format::raw, view);
  EXPECT_EQ(text, "p\n");
}

}  // namespace
}  // namespace lightq::cli
