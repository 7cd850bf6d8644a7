/// Tests of parsing JSON without leaving secrets in memory: protocol/json_syntax.hpp, json_secrets.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <lightq/protocol/json_secrets.hpp>

namespace lightq::protocol::detail {
namespace {

using testing::HasSubstr;

bool is_json(std::string_view text) {
  return JsonSyntax(text).is_json();
}

const std::vector<std::string> texts = {
    R"({"cmd":"ping"})",
    R"( { "a" : [ 1 , -2.5e+10, 0, -0, 1E5, 0.0, true, false, null, "" , {} , [] ] } )",
    R"({"a":"\"\\\/\b\f\n\r\t\u0041\uD83D\uDE00\ud7ff\uE000"})",
    "{\"\xC3\xA9\":\"\xE2\x82\xAC \xED\x9F\xBF \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF \xF0\x90\x80\x80\"}",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    "\"text\"",
    "12",
    "[1e308,123456789012345678901234567890]",
    "\t\r\n [\"\x7f\"]",
    std::string("{\"a\":\"b\"} \0x", 11),
};

TEST(JsonSyntax, AcceptsValidJson) {
  for (const std::string& text : texts) {
    EXPECT_TRUE(is_json(text)) << text;
    EXPECT_TRUE(Json::accept(text)) << text;
  }
}

TEST(JsonSyntax, RefusesInvalidJson) {
  const std::vector<std::string> bad = {"",
                                        " ",
                                        "{",
                                        "}",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{,}",
                                        "[1,]",
                                        "[1 2]",
                                        "{}{}",
                                        "{} x",
                                        "{'a':1}",
                                        "{a:1}",
                                        "01",
                                        "+1",
                                        "-",
                                        "1.",
                                        ".5",
                                        "1e",
                                        "1e+",
                                        "1e999",
                                        "-1e999",
                                        std::string(400, '9'),
                                        "tru",
                                        "nulll",
                                        "NaN",
                                        "\"",
                                        "\"\\\"",
                                        "\"\\x\"",
                                        "\"\\u12\"",
                                        "\"\\u12G4\"",
                                        "\"\\uD800\"",
                                        "\"\\uD800\\u0041\"",
                                        "\"\\uD800x\"",
                                        "\"\\uDC00\"",
                                        "\"\n\"",
                                        std::string("\"\0\"", 3),
                                        std::string("[1,\0]", 5),
                                        std::string("{\0}", 3),
                                        "\"\x80\"",
                                        "\"\xC0\x80\"",
                                        "\"\xC3\"",
                                        "\"\xE0\x80\x80\"",
                                        "\"\xED\xA0\x80\"",
                                        "\"\xF0\x80\x80\x80\"",
                                        "\"\xF4\x90\x80\x80\"",
                                        "\"\xF5\x80\x80\x80\"",
                                        "\"\xE2\x82\"",
                                        "// x\n1"};
  for (const std::string& text : bad) {
    EXPECT_FALSE(is_json(text)) << testing::PrintToString(text);
    EXPECT_FALSE(Json::accept(text)) << testing::PrintToString(text);
  }
  EXPECT_FALSE(is_json(std::string(17, '[') + std::string(17, ']'))) << "too deep";
}

TEST(JsonSyntax, AgreesWithTheParserAfterRandomChanges) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string bytes = "{}[]\":,\\u0123456789abcdefDCx+-.eE tn\xC3\xA9\xE2\x82\xAC\xED\xF0\x9F\xF4\x8F";
  std::size_t good = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = texts[random() % texts.size()];
    for (auto changes = random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      switch (random() % 3) {
        case 0: text[at] = byte; break;
        case 1: text.insert(at, 1, byte); break;
        default: text.erase(at, 1); break;
      }
      if (text.empty()) text = "x";
    }
    if (nesting_depth(text, limits::json_depth_max + 1) > limits::json_depth_max) continue;
    const bool expected = Json::accept(text);
    good += expected ? 1 : 0;
    ASSERT_EQ(is_json(text), expected) << testing::PrintToString(text);
  }
  EXPECT_GT(good, 1'000U);
}

TEST(JsonSecrets, ReadsTheSameFieldsAsTheParser) {
  for (const std::string& text : {texts[0], texts[1], texts[2], texts[3]}) {
    const auto read = parse_secrets(text, 1000);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(read.value(), Json::parse(text));
  }
  EXPECT_TRUE(parse_secrets("\xEF\xBB\xBF{}", 1000).ok()) << "behind a mark of the byte order";
  EXPECT_TRUE(parse_secrets(std::string("{\"a\":1}\0", 8), 1000).ok()) << "with the end that C gives a text";
}

TEST(JsonSecrets, RefusesAsTheOtherReaderDoes) {
  for (const std::string text :
       {"", "{", "[]", "1", R"({"a":1,"a":2})", R"({"a":{"x":"y"},"b":2,"a":{"x":[{"z":"y"}]},"b":3})",
        R"({"a":{"b":1,"b":2}})", R"({},{})", R"({"p":"secret)", R"({"p":"secret","n":1e999})", "{}],[{}"}) {
    const auto read = parse_secrets(text, 1000);
    const auto expected = parse_object(text, 1000);
    ASSERT_EQ(read.ok(), expected.ok()) << text;
    if (!read.ok()) {
      EXPECT_EQ(read.error().code, expected.error().code) << text;
      EXPECT_EQ(read.error().message, expected.error().message) << text;
    }
  }
  EXPECT_EQ(parse_secrets("{}   ", 4).error().code, ErrorCode::request_too_large);
}

}  // namespace
}  // namespace lightq::protocol::detail
