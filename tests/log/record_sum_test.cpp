/// Tests the sum of records: it is as docs/log_format.md specifies, however the bytes are split.
#include "log/format/record_sum.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/random.hpp"

namespace lightq::test {
namespace {

/// Computes the sum word by word, exactly as the format describes.
class PlainSum {
 public:
  void add(std::string payload) {
    lanes_[0] = std::rotl(lanes_[0] + payload.size(), 23);
    payload.resize((payload.size() + 31) / 32 * 32);
    for (std::size_t at = 0; at < payload.size(); at += 8) {
      std::uint64_t word = 0;
      for (std::size_t byte = 8; byte-- > 0;)
        word = word << 8 | static_cast<unsigned char>(payload[at + byte]);
      std::uint64_t& lane = lanes_.at(at / 8 % 4);
      lane = std::rotl(lane + word, 23);
    }
  }
  [[nodiscard]] std::uint64_t value() const {
    return (lanes_[0] ^ std::rotl(lanes_[1], 16)) + std::rotl(lanes_[2] ^ std::rotl(lanes_[3], 16), 32);
  }

 private:
  std::array<std::uint64_t, 4> lanes_ = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                         0x27D4EB2F165667C5};
};

std::string noise(std::size_t bytes, Random& random) {
  std::string made(bytes, '\0');
  for (char& byte : made) byte = static_cast<char>(random.below(256));
  return made;
}

/// Adds a payload while copying it, as an append does.
void add_copying(log::RecordSum& sum, std::byte* to, ByteView payload) {
  sum.add_copying(to, payload);
}
#ifdef LIGHTQ_RECORD_SUM_WIDE
LIGHTQ_AVX2_TARGET void add_copying_wide(log::RecordSum& sum, std::byte* to, ByteView payload) {
  sum.add_copying_wide(to, payload);
}
#endif

using AddCopying = void (*)(log::RecordSum& sum, std::byte* to, ByteView payload);

void expect_what_the_format_says(AddCopying add, std::size_t from_bytes) {
  Random random(7);
  log::RecordSum sum;
  log::RecordSum copying;
  PlainSum plain;
  for (std::size_t bytes = from_bytes; bytes < 300; ++bytes) {
    const std::string shifted = noise(bytes + bytes % 16, random);
    const ByteView payload = as_byte_view(shifted).subspan(bytes % 16);
    std::vector<std::byte> copy(bytes + 2, std::byte{0xA5});
    sum.add(payload);
    add(copying, copy.data() + 1, payload);
    plain.add(shifted.substr(bytes % 16));
    ASSERT_EQ(plain.value(), sum.value()) << bytes;
    ASSERT_EQ(plain.value(), copying.value()) << bytes;
    ASSERT_TRUE(std::equal(payload.begin(), payload.end(), copy.begin() + 1)) << bytes;
    ASSERT_EQ(copy.front(), std::byte{0xA5}) << bytes;
    ASSERT_EQ(copy.back(), std::byte{0xA5}) << bytes;
  }
}

TEST(RecordSumTest, MatchesTheFormatForEachLengthAndAlignment) {
  expect_what_the_format_says(add_copying, 0);
}

#ifdef LIGHTQ_RECORD_SUM_WIDE
TEST(RecordSumTest, IsTheSameWithAllLanesInOneRegister) {
  constexpr std::size_t from_bytes = 32;
  EXPECT_FALSE(log::RecordSum::may_be_wide(from_bytes - 1));
  if (!log::RecordSum::may_be_wide(from_bytes)) GTEST_SKIP() << "the processor has no AVX2";
  expect_what_the_format_says(add_copying_wide, from_bytes);
}
#endif

TEST(RecordSumTest, AnyChangedBitChangesIt) {
  Random random(8);
  for (const std::size_t bytes : {1U, 15U, 16U, 31U, 32U, 47U, 100U}) {
    std::string payload = noise(bytes, random);
    log::RecordSum sound;
    sound.add(as_byte_view(payload));
    for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
      payload[bit / 8] = static_cast<char>(payload[bit / 8] ^ 1 << bit % 8);
      log::RecordSum changed;
      changed.add(as_byte_view(payload));
      ASSERT_NE(sound.value(), changed.value()) << bytes << " bytes, bit " << bit;
      payload[bit / 8] = static_cast<char>(payload[bit / 8] ^ 1 << bit % 8);
    }
  }
}

}  // namespace
}  // namespace lightq::test
