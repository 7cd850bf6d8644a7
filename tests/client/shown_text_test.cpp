/// Tests of what a terminal is given of others' text: client/shown_text.
#include "client/shown_text.hpp"

#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

TEST(ShownText, LeavesWhatIsOnlyReadAlone) {
  for (const std::string text : {"", "ann", "ann.b-c@d", "käthe", "Ω", "数", "🙂", "a b"})
    EXPECT_EQ(without_controls(text), text);
}

TEST(ShownText, TellsWhatActsOnATerminal) {
  EXPECT_EQ(without_controls("\x1b]0;owned\x07"), "\\u001b]0;owned\\u0007");
  EXPECT_EQ(without_controls("a\n\r\tb\x7f"), "a\\u000a\\u000d\\u0009b\\u007f");
  EXPECT_EQ(without_controls("\xc2\x9b"
                             "31m"),
            "\\u009b31m")
      << "a control character of two bytes";
  EXPECT_EQ(without_controls("\u202eexe.txt\u2069"), "\\u202eexe.txt\\u2069");
  EXPECT_EQ(without_controls("\x9b"), "\\u009b") << "no UTF-8";
  EXPECT_EQ(without_controls(std::string(1, '\0')), "\\u0000");
}

TEST(ShownText, NothingElseLooksLikeThat) {
  EXPECT_EQ(without_controls("\\u001b"), "\\\\u001b");
}

TEST(ShownText, GoesNotBeyondATextThatEndsWithinACharacter) {
  EXPECT_EQ(without_controls("a\xe2\x80"), "a\xe2\\u0080");
  EXPECT_EQ(without_controls("\xf0"), "\xf0");
}

}  // namespace
}  // namespace lightq::cli
