/// Tests of parsing JSON objects, and that no error quotes the secrets in them: protocol/json_fields.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_fields.hpp>

#include "support/planted.hpp"

namespace lightq::protocol::detail {
namespace {

/// Returns true if the text is JSON, whether or not it is an object.
bool is_json(std::string_view text) {
  const auto object = parse_object(text, limits::request_bytes_max);
  return object.ok() || object.error().code == ErrorCode::invalid_cmd;
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

TEST(JsonObject, AcceptsValidJson) {
  for (const std::string& text : texts) EXPECT_TRUE(is_json(text)) << text;
}

TEST(JsonObject, RefusesInvalidJson) {
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
  }
  EXPECT_FALSE(is_json(std::string(17, '[') + std::string(17, ']'))) << "too deep";
}

TEST(JsonObject, ContainsTheFieldsOfTheText) {
  for (const std::string& text : {texts[0], texts[1], texts[2], texts[3]}) {
    const auto read = parse_object(text, 1000);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_EQ(read.value(), Json::parse(text));
  }
  EXPECT_TRUE(parse_object("\xEF\xBB\xBF{}", 1000).ok()) << "behind a mark of the byte order";
  EXPECT_TRUE(parse_object(std::string("{\"a\":1}\0", 8), 1000).ok()) << "with the end that C gives a text";
}

TEST(JsonObject, IsRefusedForOneReason) {
  const auto code = [](std::string_view text) {
    return std::string(to_word(parse_object(text, 1000).error().code));
  };
  for (const char* const text :
       {"", "{", R"({},{})", R"({"p":"secret)", R"({"p":"secret","n":1e999})", "{}],[{}"})
    EXPECT_EQ(code(text), "invalid_json") << text;
  for (const char* const text : {"[]", "1", R"([{"a":1}])"}) EXPECT_EQ(code(text), "invalid_cmd") << text;
  EXPECT_EQ(parse_object("{}   ", 4).error().code, ErrorCode::request_too_large);
}

TEST(JsonObject, IsRefusedIfANameIsRepeated) {
  for (const std::string text :
       {R"({"a":1,"a":2})", R"({"a":{"x":"y"},"b":2,"a":{"x":[{"z":"y"}]},"b":3})", R"({"a":[1,2],"a":{}})",
        R"({"c":{"a":1,"a":2}})", R"({"c":[{"a":1,"a":[]}]})"}) {
    const auto read = parse_object(text, 1000);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_request) << text;
    EXPECT_EQ(read.error().message, "a: given more than once") << text;
  }
  EXPECT_TRUE(parse_object(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})", 1000).ok()) << "in objects of their own";
  const auto cut =
      parse_object("{\"" + std::string(99, 'n') + R"(":1,")" + std::string(99, 'n') + "\":2}", 1000);
  EXPECT_EQ(cut.error().message, std::string(64, 'n') + ": given more than once");
}

/// Changes up to two bytes of `text` at random.
std::string changed(std::string text, std::mt19937& random) {
  std::string bytes = "{}[]\":,\\u0123456789abcdefDCx+-.eE tn\xC3\xA9\xE2\x82\xAC\xED\xF0\x9F\xF4\x8F\n";
  bytes += '\0';
  for (auto changes = 1 + random() % 2; changes > 0; --changes) {
    const std::size_t at = random() % text.size();
    const char byte = bytes[random() % bytes.size()];
    switch (random() % 4) {
      case 0: text[at] = byte; break;
      case 1: text.insert(at, 1, byte); break;
      case 2: text.erase(at, 1); break;
      default: text.resize(at + 1); break;
    }
    if (text.empty()) text = "x";
  }
  return text;
}

/// Parsers like to quote the text that they do not understand. Here that could be a password.
TEST(JsonObject, NoErrorOfARequestQuotesAPassword) {
  const std::vector<std::string> requests = {
      to_json(CreateTopic{{"root", planted::admin_password},
                          TopicName::parse("t").value(),
                          {},
                          {"u", planted::user_password}}),
      to_json(Join{{"u", planted::user_password}, TopicName::parse("t").value(), JoinType::pull}),
      to_json(SetPassword{{"u", planted::user_password}, false, "u", std::nullopt, planted::new_password}),
      to_json(CreateUser{{"root", planted::admin_password}, {"ann", planted::new_password}, false, {}, {}})};
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t refused = 0;
  std::size_t not_json = 0;
  for (int i = 0; i < 50'000; ++i) {
    const auto parsed = parse_request(changed(requests[random() % requests.size()], random));
    if (parsed.request.ok()) continue;
    const Error& error = parsed.request.error();
    ++refused;
    not_json += error.code == ErrorCode::invalid_json ? 1 : 0;
    planted::expect_none_in(to_json(ErrorReply{parsed.cmd, error.code, error.text()}));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(not_json, 1'000U);
  EXPECT_GT(refused, not_json + 1'000U);
}

TEST(JsonObject, NoErrorOfAReplyQuotesATicket) {
  const Join join{{"u", "p"}, TopicName::parse("t").value(), JoinType::pull};
  const std::string reply = to_json(JoinReply{"t", "tcp://h:1", Ticket{"id", planted::ticket_secret, 12}});
  EXPECT_NE(reply.find(planted::ticket_secret), std::string::npos);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto parsed = parse_reply(join, changed(reply, random));
    if (parsed.ok()) continue;
    ++refused;
    planted::expect_none_in(parsed.error().text());
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, 1'000U);
}

}  // namespace
}  // namespace lightq::protocol::detail
