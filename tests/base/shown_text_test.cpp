/// Tests of lightq/base/shown_text: how text from other programs is made safe to print on a terminal.
#include <gtest/gtest.h>

#include <lightq/base/shown_text.hpp>

namespace lightq {
namespace {

TEST(ShownText, LeavesPrintableCharactersUnchanged) {
  for (const std::string text : {"", "ann", "ann.b-c@d", "käthe", "Ω", "数", "🙂", "a b"})
    EXPECT_EQ(without_controls(text), text);
}

TEST(ShownText, EscapesTerminalControls) {
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

TEST(ShownText, NoOtherTextLooksLikeAnEscape) {
  EXPECT_EQ(without_controls("\\u001b"), "\\\\u001b");
}

TEST(ShownText, EscapesEachInvalidUtf8Byte) {
  EXPECT_EQ(without_controls("a\xe2\x80"), "a\\u00e2\\u0080") << "ends within a character";
  EXPECT_EQ(without_controls("\xf0"), "\\u00f0");
  EXPECT_EQ(without_controls("\xff\xc0\x9b"), "\\u00ff\\u00c0\\u009b") << "an overlong character";
  EXPECT_EQ(without_controls("\xed\xa0\x80"), "\\u00ed\\u00a0\\u0080") << "a surrogate";
}

TEST(ShownText, KeepsThePermittedCharactersAndExistingEscapes) {
  std::string shown = "> ";
  append_escaping_controls(shown, "a\n\tb\x1b\\u001b", "\n\t");
  EXPECT_EQ(shown, "> a\n\tb\\u001b\\u001b");
}

}  // namespace
}  // namespace lightq
