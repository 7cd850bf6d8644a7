/// Tests of the screen of `lightq top`: rates, order, selection, widths and hostile names.
#include "client/top/top_screen.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/text/wrapped_text.hpp"

namespace lightq::cli {
namespace {

TopicStats topic_with(const std::string& name, std::uint64_t received, std::uint64_t lag) {
  TopicStats stats;
  stats.topic = name;
  stats.messages_received = received;
  stats.next_offset = received;
  stats.log_bytes = received * 100;
  protocol::GroupStats group;
  group.group = "g-" + name;
  group.pending = lag;
  group.ready = lag;
  stats.groups.push_back(group);
  return stats;
}

TopScreen three_topics() {
  TopScreen screen("tcp://h:1");
  screen.update({topic_with("a", 10, 5), topic_with("b", 1000, 0), topic_with("c", 30, 900)}, 1);
  screen.update({topic_with("a", 2010, 5), topic_with("b", 1000, 0), topic_with("c", 1030, 900)}, 2);
  return screen;
}

std::string all_of(TopScreen& screen, std::size_t columns = 80, std::size_t rows = 24) {
  std::string text;
  for (const std::string& line : screen.lines(columns, rows)) text += line + "\n";
  return text;
}

/// Returns the first letters of the lines with topics.
std::string order_of(TopScreen& screen) {
  std::string letters;
  const auto lines = screen.lines(80, 24);
  for (std::size_t i = 2; i < lines.size() && !lines[i].empty(); ++i) letters += lines[i][0];
  return letters;
}

TEST(TopScreen, ShowsRatesBetweenTwoUpdates) {
  TopScreen screen = three_topics();
  const std::string text = all_of(screen);
  EXPECT_NE(text.find("3 topics, in 1.5 k/s, out 0 /s"), std::string::npos) << text;
  EXPECT_NE(text.find("1.0 k/s"), std::string::npos) << text;
  screen.update({topic_with("a", 5, 5)}, 1);  // a topic that was made anew has no negative rate
  EXPECT_NE(all_of(screen).find("1 topic, in 0 /s"), std::string::npos);
}

TEST(TopScreen, SortsByEachKeyAndReverses) {
  TopScreen screen = three_topics();
  EXPECT_EQ(order_of(screen), "abc");
  for (const auto& [key, order] : std::vector<std::pair<char, std::string>>{
           {'i', "acb"}, {'m', "acb"}, {'b', "acb"}, {'l', "cab"}, {'o', "abc"}, {'n', "abc"}}) {
    EXPECT_TRUE(screen.press(key));
    EXPECT_EQ(order_of(screen), order) << key;
  }
  EXPECT_TRUE(screen.press('r'));
  EXPECT_EQ(order_of(screen), "cba");
}

TEST(TopScreen, TheSelectionFollowsItsTopicAndOpensIt) {
  TopScreen screen = three_topics();
  (void)screen.lines(80, 24);
  EXPECT_EQ(screen.selected_line(), 2U);
  EXPECT_TRUE(screen.press(TopScreen::up));  // stays at the first
  EXPECT_TRUE(screen.press(TopScreen::down));
  EXPECT_TRUE(screen.press('i'));
  (void)screen.lines(80, 24);
  EXPECT_EQ(screen.selected_line(), 4U) << "topic b, now the last";
  EXPECT_TRUE(screen.press(TopScreen::enter));
  EXPECT_NE(all_of(screen).find("topic b"), std::string::npos);
  EXPECT_NE(all_of(screen).find("g-b"), std::string::npos);
  EXPECT_TRUE(screen.press('q')) << "back to the list";
  EXPECT_NE(all_of(screen).find("3 topics"), std::string::npos);
  EXPECT_TRUE(screen.press(TopScreen::escape)) << "Escape alone ends nothing";
  EXPECT_FALSE(screen.press('q'));
}

TEST(TopScreen, ScrollsToTheSelection) {
  TopScreen screen("b");
  std::vector<TopicStats> topics;
  for (int i = 100; i < 200; ++i) topics.push_back(topic_with("t" + std::to_string(i), 1, 0));
  screen.update(topics, 1);
  for (int i = 0; i < 150; ++i) screen.press(TopScreen::down);
  EXPECT_NE(all_of(screen, 80, 10).find("t199"), std::string::npos);
  EXPECT_EQ(all_of(screen, 80, 10).find("t192"), std::string::npos);
}

TEST(TopScreen, HasTheSizeOfTheTerminalAndNoControlCharacters) {
  TopScreen screen("b\x1b]0;owned\x07");
  TopicStats hostile = topic_with(
      "t\x1b[2J\xc2\x9b"
      "31m\xe2\x80\xae"
      "\u6f22\U0001F600e\u0301" +
          std::string(300, 'x'),
      1, 1);
  hostile.blocked_by = "group:\x1b[31m\n";
  hostile.groups[0].group = "\u6f22\u5b57g\x1b[2J\n";
  screen.update({hostile}, 1);
  screen.set_notice("broken\x1b[2J");
  for (const bool is_open : {false, true}) {
    if (is_open) screen.press(TopScreen::enter);
    for (const auto& [columns, rows] :
         std::vector<std::pair<std::size_t, std::size_t>>{{80, 24}, {200, 50}, {20, 3}, {1, 1}, {0, 0}}) {
      const auto lines = screen.lines(columns, rows);
      EXPECT_EQ(lines.size(), rows);
      for (const std::string& line : lines) {
        EXPECT_LE(columns_of(line), columns) << line;
        EXPECT_TRUE(std::ranges::none_of(line, [](unsigned char c) { return c < ' ' || c == 0x7f; })) << line;
        EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos);
        EXPECT_EQ(line.find("\xe2\x80\xae"), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace lightq::cli
