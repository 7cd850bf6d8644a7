/// Tests of "Did you mean": mistyped commands, and the commands of 2015.
#include "client/text/suggestion.hpp"

#include <array>

#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

constexpr std::array<std::string_view, 4> commands = {"broker", "produce", "consume", "topic"};

TEST(Suggestion, FindsTheNearestCommand) {
  EXPECT_EQ(nearest_word("prodcue", commands), "produce");
  EXPECT_EQ(nearest_word("tpoic", commands), "topic");
  EXPECT_EQ(nearest_word("consumer", commands), "consume");
}

TEST(Suggestion, KnowsOtherPeoplesWords) {
  EXPECT_EQ(nearest_word("publish", commands), "produce");
  EXPECT_EQ(nearest_word("serve", commands), "broker");
}

TEST(Suggestion, StaysSilentWhenNothingIsNear) {
  EXPECT_FALSE(nearest_word("frobnicate", commands).has_value());
  EXPECT_FALSE(nearest_word("", commands).has_value());
  EXPECT_FALSE(nearest_word(std::string(100'000, 'x'), commands).has_value());
}

TEST(Suggestion, TranslatesTheCommandsOf2015) {
  const std::array<std::string, 3> producer = {"producer", "10000000", "100"};
  EXPECT_EQ(modern_spelling(producer), "lightq produce test -n 10000000 --size 100");
  const std::array<std::string, 4> consumer = {"consumer", "queue", "zmq", "pull"};
  EXPECT_EQ(modern_spelling(consumer), "lightq consume test --mode pull");
  const std::array<std::string, 1> modern = {"produce"};
  EXPECT_FALSE(modern_spelling(modern).has_value());
}

}  // namespace
}  // namespace lightq::cli
