/// Tests of tables, and of text that is wrapped to a width.
#include "client/text/text_table.hpp"

#include <gtest/gtest.h>

#include "client/text/wrapped_text.hpp"

namespace lightq::cli {
namespace {

TEST(TextTable, AlignsWordsAtTheLeftAndNumbersAtTheRight) {
  TextTable table({{"topic"}, {"messages", true}, {"state"}});
  EXPECT_TRUE(table.is_empty());
  table.add({std::string(30, 'x'), "1,234,567,890", "open"});
  table.add({"a", "7", ""});
  EXPECT_EQ(table.text(), "topic                                messages  state\n" + std::string(30, 'x') +
                              "  1,234,567,890  open\n"
                              "a                                           7\n");
  EXPECT_EQ(table.tab_separated(), std::string(30, 'x') + "\t1,234,567,890\topen\na\t7\t\n");
}

TEST(TextTable, CountsColumnsInsteadOfBytes) {
  TextTable table({{"time", true}, {"state"}});
  table.add({"85 µs", "ok"});
  table.add({"1.2 ms", "ok"});
  EXPECT_EQ(table.text(), "  time  state\n 85 µs  ok\n1.2 ms  ok\n");
}

TEST(TextTable, WideCharactersTakeTwoColumnsAndMarksNone) {
  TextTable table({{"name"}, {"state"}});
  table.add({"\u6f22\u5b57", "ok"});         // two Chinese characters
  table.add({"e\u0301clair", "ok"});         // an accent of its own
  table.add({"\U0001F600 and more", "ok"});  // an emoji
  EXPECT_EQ(table.text(),
            "name         state\n"
            "\u6f22\u5b57         ok\n"
            "e\u0301clair       ok\n"
            "\U0001F600 and more  ok\n");
}

TEST(TextTable, ACellCannotLookLikeAnotherRowNorActOnTheTerminal) {
  TextTable table({{"name"}, {"state"}});
  table.add({"a\nb  open", "\x1b[2J\t\xc2\x9b\xff"});
  const std::string cells[] = {"a\\u000ab  open", "\\u001b[2J\\u0009\\u009b\\u00ff"};
  EXPECT_EQ(table.text(), "name            state\n" + cells[0] + "  " + cells[1] + "\n");
  EXPECT_EQ(table.tab_separated(), cells[0] + "\t" + cells[1] + "\n");
}

TEST(WrappedText, CutsAtColumnsWithoutSplittingACharacter) {
  EXPECT_EQ(cut_to("orders", 6), "orders");
  EXPECT_EQ(cut_to("orders", 5), "orde~");
  EXPECT_EQ(cut_to("orders", 1), "~");
  EXPECT_EQ(cut_to("orders", 0), "");
  EXPECT_EQ(cut_to("\u6f22\u5b57\u6f22", 5), "\u6f22\u5b57~");
  EXPECT_EQ(cut_to("\u6f22\u5b57\u6f22", 4), "\u6f22~");
  EXPECT_EQ(columns_of("\u6f22\xff"), 3U);
}

TEST(WrappedText, BreaksOnlyBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 9, 2, 4), "one\n  two\n  three");
  EXPECT_EQ(wrapped("a-very-long-word is kept", 5), "a-very-long-word\nis\nkept");
  EXPECT_EQ(wrapped("", 5), "");
}

TEST(WrappedText, BreaksACommandSoThatAShellJoinsIt) {
  EXPECT_EQ(wrapped_command("  lightq stats", 40), "  lightq stats");
  EXPECT_EQ(wrapped_command("  lightq produce orders --key 'a b' -n 1", 30),
            "  lightq produce orders \\\n      --key 'a b' -n 1");
  EXPECT_EQ(wrapped_command("  lightq key new client.key   # the key stays", 30),
            "  # the key stays\n  lightq key new client.key");
}

TEST(WrappedText, JoinsTheLinesOfAParagraphAndKeepsCommands) {
  EXPECT_EQ(wrapped_paragraphs("One two\nthree four.\n\nExamples:\n  lightq stats\n  lightq ping", 12),
            "One two\nthree four.\n\nExamples:\n  lightq \\\n      stats\n  lightq \\\n      ping\n");
}

}  // namespace
}  // namespace lightq::cli
