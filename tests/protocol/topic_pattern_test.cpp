/// Tests of patterns of topic names: protocol/topic_pattern.hpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <lightq/protocol/topic_pattern.hpp>

namespace lightq::protocol {
namespace {

TEST(TopicPattern, IsATopicsNameInWhichStarsMayStand) {
  for (const char* const good : {"orders", "*", "orders.*", "*.eu", "a*b*c", "**", "A-Z_0.9*"})
    EXPECT_TRUE(is_topic_pattern(good)) << good;
  const std::string most(limits::topic_pattern_bytes_max, 'a');
  EXPECT_TRUE(is_topic_pattern(most));
  for (const std::string& bad : {std::string(), std::string(".a"), std::string("-*"), std::string("a b"),
                                 std::string("a?"), std::string("caf\xc3\xa9"), most + "a"})
    EXPECT_FALSE(is_topic_pattern(bad)) << bad;
}

TEST(RightPattern, IsOneOfTopicsOrOneOfTopicsAndOneOfGroups) {
  for (const char* const good : {"orders", "*", "orders:workers", "orders.*:w*", "*:*"})
    EXPECT_TRUE(is_right_pattern(good)) << good;
  const std::string half(limits::topic_pattern_bytes_max / 2, 'a');
  for (const std::string& bad :
       {std::string(":"), std::string("orders:"), std::string(":workers"), std::string("a:b:c"),
        std::string("orders:.w"), std::string("orders: w"), half + ":" + half})
    EXPECT_FALSE(is_right_pattern(bad)) << bad;
  EXPECT_EQ(split_right_pattern("orders").topic, "orders");
  EXPECT_FALSE(split_right_pattern("orders").group);
  EXPECT_EQ(split_right_pattern("orders.*:w*").topic, "orders.*");
  EXPECT_EQ(split_right_pattern("orders.*:w*").group, "w*");
}

TEST(TopicPattern, FitsTheNamesThatItStandsFor) {
  EXPECT_TRUE(fits_pattern("orders", "orders"));
  EXPECT_FALSE(fits_pattern("orders", "order"));
  EXPECT_FALSE(fits_pattern("order", "orders"));
  EXPECT_TRUE(fits_pattern("orders", "*"));
  EXPECT_TRUE(fits_pattern("orders.eu", "orders.*"));
  EXPECT_TRUE(fits_pattern("orders.", "orders.*")) << "a star stands for nothing, too";
  EXPECT_FALSE(fits_pattern("orders", "orders.*"));
  EXPECT_TRUE(fits_pattern("orders.eu", "*.eu"));
  EXPECT_FALSE(fits_pattern("orders.eu.old", "*.eu"));
  EXPECT_TRUE(fits_pattern("a.eu.eu", "*.eu")) << "the first place that fits is not the last";
  EXPECT_TRUE(fits_pattern("abcabc", "a*b*c"));
  EXPECT_FALSE(fits_pattern("abcab", "a*b*c"));
  EXPECT_FALSE(fits_pattern("Orders", "orders"));
}

/// Matches a name against a pattern by recursion: slow, but evidently right.
bool fits_slowly(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*')
    return !name.empty() && name[0] == pattern[0] && fits_slowly(name.substr(1), pattern.substr(1));
  return fits_slowly(name, pattern.substr(1)) || (!name.empty() && fits_slowly(name.substr(1), pattern));
}

TEST(TopicPattern, AgreesWithItsDefinitionOnAllShortTexts) {
  std::vector<std::string> texts{""};
  constexpr std::size_t up_to_five = 1 + 3 + 9 + 27 + 81;
  for (std::size_t i = 0; i < up_to_five; ++i) {
    for (const char c : {'a', 'b', '*'}) texts.push_back(texts[i] + c);
  }
  std::size_t fitting = 0;
  for (const std::string& pattern : texts) {
    for (const std::string& name : texts) {
      if (name.find('*') != std::string::npos) continue;
      ASSERT_EQ(fits_pattern(name, pattern), fits_slowly(name, pattern)) << name << " and " << pattern;
      fitting += fits_pattern(name, pattern) ? 1 : 0;
    }
  }
  EXPECT_GT(fitting, 1000U);
}

TEST(TopicPattern, NeedsFewStepsEvenWithManyStars) {
  std::string pattern;
  for (std::size_t i = 0; i < limits::topic_pattern_bytes_max / 2; ++i) pattern += "*a";
  const std::string name(limits::topic_name_bytes_max - 1, 'a');
  EXPECT_TRUE(fits_pattern(name, pattern));
  EXPECT_FALSE(fits_pattern(name + "b", pattern)) << "would not end if it tried them all";
}

}  // namespace
}  // namespace lightq::protocol
