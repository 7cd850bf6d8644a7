/// Tests how the bytes of a terminal become keys of `lightq top`.
#include <gtest/gtest.h>

#include <string>

#include "client/top/key_decoder.hpp"
#include "client/top/top_screen.hpp"

namespace lightq::cli {
namespace {

const std::string escape_key(1, TopScreen::escape);
const std::string down_key(1, TopScreen::down);
const std::string up_key(1, TopScreen::up);
const std::string enter_key(1, TopScreen::enter);

TEST(KeyDecoder, KeysThatComeInOneReadAreAllDecoded) {
  KeyDecoder keys;
  EXPECT_EQ(keys.decode("\x1b[B\r"), down_key + enter_key);
  EXPECT_EQ(keys.decode("l\x1bOAq\n"), "l" + up_key + "q" + enter_key);
  EXPECT_EQ(keys.decode("\x1b[A\x1b[A\x1b[B"), up_key + up_key + down_key);
  EXPECT_FALSE(keys.is_incomplete());
}

TEST(KeyDecoder, AKeyThatComesInSeveralReadsIsDecodedOnce) {
  KeyDecoder keys;
  EXPECT_EQ(keys.decode("r\x1b"), "r");
  EXPECT_TRUE(keys.is_incomplete());
  EXPECT_EQ(keys.decode("["), "");
  EXPECT_TRUE(keys.is_incomplete());
  EXPECT_EQ(keys.decode("B"), down_key);
  EXPECT_FALSE(keys.is_incomplete());
  EXPECT_EQ(keys.finish(), "");
}

TEST(KeyDecoder, EscapeAloneIsAKeyOnceNothingFollows) {
  KeyDecoder keys;
  EXPECT_EQ(keys.decode("\x1b"), "");
  EXPECT_EQ(keys.finish(), escape_key);
  EXPECT_EQ(keys.decode("\x1bq"), escape_key + "q") << "another key shows that Escape was pressed";
  EXPECT_EQ(keys.decode("\x1b\x1b"), escape_key);
  EXPECT_EQ(keys.finish(), escape_key);
}

TEST(KeyDecoder, SequencesOfOtherKeysAreLeftOut) {
  KeyDecoder keys;
  EXPECT_EQ(keys.decode("\x1b[1;5B\x1b[3~\x1b[H\x1bOPx"), "x") << "Control-Down, Delete, Home, F1";
  EXPECT_EQ(keys.decode("\x1b[12"), "");
  EXPECT_EQ(keys.finish(), "") << "a sequence without an end";
  EXPECT_EQ(keys.decode("\x1b[1\x1b[B"), down_key) << "a sequence that another one cuts";
  EXPECT_EQ(keys.decode("\x1b[\xc3\xa9"), "\xc3\xa9");
}

}  // namespace
}  // namespace lightq::cli
