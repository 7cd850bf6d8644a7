/// Tests of CRC-32C: the vectors of RFC 3720, B.4, and the hardware's results against those of the tables.
#include <lightq/base/crc32c.hpp>

#include <gtest/gtest.h>

#include <numeric>

#include <lightq/base/types.hpp>

#include "support/random.hpp"

namespace lightq {
namespace {

std::vector<std::byte> sequence(int first, int step) {
  std::vector<std::byte> bytes(32);
  for (auto& byte : bytes) {
    byte = static_cast<std::byte>(first);
    first += step;
  }
  return bytes;
}

TEST(Crc32c, AgreesWithTheVectorsOfRfc3720) {
  for (const auto crc : {&crc32c, &crc32c_by_table}) {
    EXPECT_EQ(crc(sequence(0, 0), 0), 0x8A9136AAU);
    EXPECT_EQ(crc(sequence(0xFF, 0), 0), 0x62A8AB43U);
    EXPECT_EQ(crc(sequence(0, 1), 0), 0x46DD794EU);
    EXPECT_EQ(crc(sequence(31, -1), 0), 0x113FDB5CU);
    EXPECT_EQ(crc(as_byte_view("123456789"), 0), 0xE3069283U);
    EXPECT_EQ(crc({}, 0), 0U);
  }
}

TEST(Crc32c, IsTheSameByHardwareAndByTableAtAnyLengthAndAlignment) {
  test::Random random;
  const auto bytes = random.bytes(64 * 1024);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t length = random.below(round < 2000 ? 2000 : 40'000);
    const ByteView part = ByteView(bytes).subspan(random.below(bytes.size() - length), length);
    const auto before = static_cast<std::uint32_t>(random.below(1ULL << 32));
    const std::uint32_t expected = crc32c_by_table(part, before);
    ASSERT_EQ(expected, crc32c(part, before)) << "length " << length;
#ifdef LIGHTQ_CRC32C_SSE42
    using namespace crc32c_detail;
    if (has_sse42) {
      ASSERT_EQ(expected, ~raw_by_sse42(part.data(), length, ~before)) << "length " << length;
    }
    if (has_wide && wide_bytes_min <= length) {
      ASSERT_EQ(expected, ~raw_by_wide(part.data(), length, ~before)) << "length " << length;
    }
#endif
  }
}

TEST(Crc32c, TheSumOfTwoPartsInTurnIsThatOfTheWhole) {
  test::Random random;
  const auto bytes = random.bytes(30'000);
  const std::uint32_t whole = crc32c(bytes);
  for (int round = 0; round < 200; ++round) {
    const std::size_t cut = random.below(bytes.size());
    ASSERT_EQ(crc32c(ByteView(bytes).subspan(cut), crc32c(ByteView(bytes).first(cut))), whole)
        << "cut " << cut;
  }
}

TEST(Crc32c, JoinsTwoStretches) {
  test::Random random;
  const auto bytes = random.bytes(100'000);
  for (const std::size_t first : {0UL, 1UL, 7UL, 64UL, 4095UL, 65'536UL, 99'999UL, 100'000UL}) {
    const std::span<const std::byte> all(bytes);
    const std::uint32_t joined =
        crc32c_join(crc32c(all.first(first)), crc32c(all.subspan(first)), bytes.size() - first);
    EXPECT_EQ(crc32c(all), joined) << first;
  }
}

TEST(Crc32c, TheSumOfTwoWordsIsThatOfTheirBytes) {
  test::Random random;
  for (int round = 0; round < 200; ++round) {
    const auto bytes = random.bytes(16);
    const auto before = static_cast<std::uint32_t>(random.below(1ULL << 32));
    const auto first = load_little_endian<std::uint64_t>(bytes.data());
    const auto second = load_little_endian<std::uint64_t>(bytes.data() + 8);
    ASSERT_EQ(crc32c_of_words(first, second, before), crc32c_by_table(bytes, before));
  }
}

TEST(Crc32c, CopiesAndSumsInOnePass) {
  test::Random random;
  for (const std::size_t size : {0UL, 1UL, 4607UL, 4608UL, 4609UL, 20'000UL}) {
    const auto bytes = random.bytes(size);
    std::vector<std::byte> copy(size);
    EXPECT_EQ(crc32c(bytes, 17), crc32c_copy(copy.data(), bytes, 17)) << size;
    EXPECT_EQ(bytes, copy);
  }
}

}  // namespace
}  // namespace lightq
