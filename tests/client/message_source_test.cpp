/// Tests of the sources of produced messages.
#include "client/commands/message_source.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.hpp"

namespace lightq::cli {
namespace {

class MessageSourceTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }
  static std::vector<std::string> all(MessageSource& source) {
    std::vector<std::string> messages;
    while (source.next().value_or_throw()) messages.emplace_back(source.message());
    return messages;
  }
  test::TempDir directory_;
};

using Messages = std::vector<std::string>;

TEST_F(MessageSourceTest, ReadsEachLineAsAMessage) {
  const auto source = lines_of({file("a", "one\n\nthree\n")}, 0);
  EXPECT_EQ(all(*source), (Messages{"one", "", "three"}));
}

TEST_F(MessageSourceTest, AcceptsALastLineWithoutItsEnd) {
  const auto source = lines_of({file("a", "one\ntwo"), file("b", "three")}, 0);
  EXPECT_EQ(all(*source), (Messages{"one", "two", "three"}));
}

TEST_F(MessageSourceTest, HasNothingToSayAboutEmptyFiles) {
  const auto source = lines_of({file("a", ""), file("b", ""), file("c", "one\n")}, 0);
  EXPECT_EQ(all(*source), Messages{"one"});
}

TEST_F(MessageSourceTest, JoinsLinesLongerThanItsBuffer) {
  const std::string large(1 << 20, 'x');
  const auto source = lines_of({file("a", large + "\n" + large)}, 0);
  EXPECT_EQ(all(*source), (Messages{large, large}));
}

TEST_F(MessageSourceTest, KeepsNoMoreOfALongLineThanAMessageMayHave) {
  constexpr std::uint64_t kept = 1'000;
  constexpr std::uint64_t length = 3'000'000;
  const auto source =
      lines_of({file("a", "one\n" + std::string(length, 'x') + "\n" + std::string(kept, 'y') + "\n")}, 0);
  source->keep_at_most(kept);
  ASSERT_TRUE(source->next().value_or_throw());
  EXPECT_FALSE(source->is_too_long());
  ASSERT_TRUE(source->next().value_or_throw());
  EXPECT_TRUE(source->is_too_long());
  EXPECT_EQ(source->message().size(), kept);
  EXPECT_EQ(source->message_bytes(), length);
  ASSERT_TRUE(source->next().value_or_throw());
  EXPECT_FALSE(source->is_too_long());
  EXPECT_EQ(source->message(), std::string(kept, 'y'));
  EXPECT_FALSE(source->next().value_or_throw());
}

TEST_F(MessageSourceTest, StopsAtTheCount) {
  const auto source = lines_of({file("a", "1\n2\n3\n")}, 2);
  EXPECT_EQ(all(*source), (Messages{"1", "2"}));
}

TEST_F(MessageSourceTest, NamesAMissingFile) {
  const auto source = lines_of({directory_ / "none"}, 0);
  const Result<bool> next = source->next();
  ASSERT_FALSE(next.ok());
  EXPECT_NE(next.error().text().find("none"), std::string::npos);
}

TEST_F(MessageSourceTest, NumbersGeneratedMessages) {
  const auto source = generated(11, 4);
  const Messages messages = all(*source);
  ASSERT_EQ(messages.size(), 11U);
  EXPECT_EQ(messages[0], "0...");
  EXPECT_EQ(messages[10], "10..");
  EXPECT_EQ(all(*generated(1, 0)), Messages{""});
}

}  // namespace
}  // namespace lightq::cli
