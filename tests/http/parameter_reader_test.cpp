/// Tests of the parameters of requests.
#include "http/parameter_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace lightq::broker {

namespace {

using ::testing::HasSubstr;
using From = StartPosition::From;

constexpr std::array<std::string_view, 5> known_parameters = {"from", "time_us", "max", "group", "ack"};

/// Returns the position that a query names, or the error's text in `fault`.
std::optional<StartPosition> place_in(const std::string& text, std::string& fault) {
  const Query query = Query::parse(text).value_or_throw();
  ParameterReader reader(query, known_parameters);
  const auto place = reader.place();
  fault = reader.error() ? reader.error()->message : std::string();
  return place;
}

TEST(ParameterReader, ReadsPlaces) {
  std::string fault;
  EXPECT_EQ(place_in("max=1", fault), std::nullopt);
  EXPECT_EQ(place_in("from=first", fault), (StartPosition{From::first, 0}));
  EXPECT_EQ(place_in("from=next", fault), (StartPosition{From::next, 0}));
  EXPECT_EQ(place_in("from=17", fault), (StartPosition{From::offset, 17}));
  EXPECT_EQ(place_in("time_us=5", fault), (StartPosition{From::time, 5}));
  EXPECT_EQ(fault, "");
  for (const char* const wrong : {"from=", "from=-1", "from=1x", "from=last", "from=9223372036854775808",
                                  "time_us=x", "from=1&time_us=1"}) {
    (void)place_in(wrong, fault);
    EXPECT_NE(fault, "") << wrong;
  }
}

TEST(ParameterReader, ReadsBytesAsTextOrBase64) {
  constexpr std::array<std::string_view, 2> keys = {"key", "key_base64"};
  const auto key_in = [&](const std::string& text, bool is_right) {
    const Query query = Query::parse(text).value_or_throw();
    ParameterReader reader(query, keys);
    auto key = reader.bytes("key", 4);
    EXPECT_EQ(reader.error().has_value(), !is_right) << text;
    return key;
  };
  EXPECT_EQ(key_in("", true), std::nullopt);
  EXPECT_EQ(key_in("key=", true), "");
  EXPECT_EQ(key_in("key=abcd", true), "abcd");
  EXPECT_EQ(key_in("key_base64=AP8%3D", true), std::string("\0\xff", 2));
  for (const char* const wrong :
       {"key=abcde", "key_base64=YWJjZGU%3D", "key_base64=%3F", "key=a&key_base64=YQ%3D%3D"})
    key_in(wrong, false);
}

TEST(ParameterReader, KeepsTheFirstError) {
  const Query query = Query::parse("max=0&group=-&ack=x").value_or_throw();
  ParameterReader reader(query, known_parameters);
  EXPECT_EQ(reader.number("max", 1, 10, 3), 3U);
  (void)reader.name("group");
  EXPECT_EQ(reader.word("ack", {"later", "now"}), 0U);
  ASSERT_TRUE(reader.error());
  EXPECT_THAT(reader.error()->message, HasSubstr("max: must be a whole number from 1 to 10"));
}

TEST(ParameterReader, RefusesUnknownParameters) {
  const Query query = Query::parse("nothing=1").value_or_throw();
  EXPECT_TRUE(ParameterReader(query, known_parameters).error());
}

}  // namespace

}  // namespace lightq::broker
