/// Tests of the input that a connection keeps between two reads.
#include "net/connection_input.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "endpoint/toy_cipher.hpp"

namespace lightq::broker {
namespace {

using lightq::test::ToyCipher;
constexpr std::size_t scratch_bytes = 100;

class ConnectionInputTest : public testing::Test {
 protected:
  /// Receives `text` behind the leftover and returns all that can be consumed.
  std::string receive(const std::string& text) {
    const auto space = input_.space_behind_leftover();
    std::ranges::copy(as_byte_view(text), space.begin());
    last_ = input_.join(text.size());
    input_.begin();
    return std::string(as_text(last_));
  }
  /// Keeps what follows the first `used` bytes.
  bool keep_from(std::size_t used) { return input_.keep(ByteView(last_).subspan(used)); }

  std::vector<std::byte> scratch_ = std::vector<std::byte>(scratch_bytes);
  ConnectionInput input_{scratch_};
  std::span<std::byte> last_;
};

TEST_F(ConnectionInputTest, TheRestComesFirstNextTime) {
  EXPECT_EQ(receive("abcdef"), "abcdef");
  EXPECT_FALSE(keep_from(4)) << "more input is needed";
  EXPECT_EQ(input_.space_behind_leftover().size(), scratch_bytes - 2);
  EXPECT_EQ(receive("gh"), "efgh");
  EXPECT_FALSE(keep_from(4));
  EXPECT_TRUE(input_.leftover().empty());
}

TEST_F(ConnectionInputTest, TheRestAfterAPauseIsConsumedBeforeMoreIsRead) {
  receive("abcdef");
  input_.note_pause();
  EXPECT_TRUE(keep_from(4));
  EXPECT_TRUE(input_.leftover_unseen());
  EXPECT_EQ(as_text(input_.take_leftover()), "ef");
  EXPECT_FALSE(input_.leftover_unseen());

  receive("gh");
  input_.note_pause();
  EXPECT_FALSE(keep_from(2)) << "nothing is left";
}

TEST_F(ConnectionInputTest, OnlyMemoryBeyondOneReadCounts) {
  receive(std::string(scratch_bytes, 'x'));
  keep_from(1);
  EXPECT_EQ(input_.memory_bytes(), 0U);
  ASSERT_TRUE(input_.large_frame().begin(1000, as_byte_view("begin")));
  EXPECT_EQ(input_.memory_bytes(), input_.large_frame().memory_bytes());
  EXPECT_GE(input_.memory_bytes(), 5U);
}

TEST_F(ConnectionInputTest, EncryptedBytesAreDecryptedByWholeUnitsBehindTheLeftover) {
  constexpr std::size_t unit_max = 64;
  input_.decrypt_with(std::make_unique<ToyCipher>(unit_max));
  receive("left");
  keep_from(0);
  std::vector<std::byte> wire;
  ToyCipher::seal_to(as_byte_view(" over"), wire);
  std::vector<std::byte> answer;
  const auto cut = std::span(wire).first(wire.size() - 1);
  std::vector<std::byte> plain = input_.decrypt(cut, answer);
  EXPECT_EQ(as_text(plain), "left") << "the unit is incomplete";
  input_.keep_unseen(plain);
  input_.give_back(std::move(plain));
  EXPECT_GE(input_.memory_bytes(), cut.size());

  plain = input_.decrypt(std::span(wire).last(1), answer);
  EXPECT_EQ(as_text(plain), "left over");
  input_.give_back(std::move(plain));
  EXPECT_EQ(input_.memory_bytes(), 0U);
}

}  // namespace
}  // namespace lightq::broker
