/// Tests of the parser for the query of a URL.
#include "http/query.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Query, DecodesNamesAndValues) {
  const auto query = Query::parse("topic=a%2Ab&x+y=1+2&empty=&flag&z=%C3%A4%3D%26").value_or_throw();
  EXPECT_THAT(query.parameters(), ElementsAre(Pair("topic", "a*b"), Pair("x y", "1 2"), Pair("empty", ""),
                                              Pair("flag", ""), Pair("z", "\xC3\xA4=&")));
  EXPECT_EQ(query.find("topic"), "a*b");
  EXPECT_EQ(query.find("Topic"), std::nullopt);
}

TEST(Query, MayBeEmpty) {
  EXPECT_THAT(Query::parse("").value_or_throw().parameters(), IsEmpty());
  EXPECT_THAT(Query::parse("&&").value_or_throw().parameters(), IsEmpty());
}

TEST(Query, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  for (const char* wrong : {"a=%", "a=%4", "a=%4g", "a=%00", "%zz=1", "=1", "a=1&a=2", "a=1&%61=2"}) {
    const auto query = Query::parse(wrong);
    ASSERT_FALSE(query.ok()) << wrong;
    EXPECT_EQ(query.error().code, ErrorCode::invalid_request);
  }
  EXPECT_FALSE(Query::parse(std::string_view("a=\0", 3)).ok());
}

TEST(Query, HasALimitOfParameters) {
  std::string text;
  for (std::size_t i = 0; i < limits::http_query_parameters_max; ++i) text += "p" + std::to_string(i) + "=&";
  EXPECT_TRUE(Query::parse(text).ok());
  EXPECT_THAT(Query::parse(text + "more").error().message, HasSubstr("more than 64"));
}

TEST(Query, NamesTheParameterThatIsNotKnown) {
  const auto query = Query::parse("topic=a&tpoic=b").value_or_throw();
  const std::array<std::string_view, 1> known = {"topic"};
  EXPECT_THAT(query.objection(known)->message, HasSubstr("tpoic"));
  const std::array<std::string_view, 2> both = {"topic", "tpoic"};
  EXPECT_FALSE(query.objection(both));
}

TEST(PercentDecoding, RefusesBytesThatAreNotUtf8) {
  for (const char* text : {"%ff", "a%C3", "%C0%80", "%ED%A0%80", "\xE4"}) {
    EXPECT_FALSE(percent_decoded(text, false)) << text;
    EXPECT_FALSE(Query::parse("a=" + std::string(text)).ok()) << text;
  }
  EXPECT_EQ(percent_decoded("%E2%82%AC", false), "\xE2\x82\xAC");
}

TEST(PercentDecoding, KeepsAPlusInPaths) {
  EXPECT_EQ(percent_decoded("/a+b%20c", false), "/a+b c");
}

}  // namespace

}  // namespace lightq::broker
