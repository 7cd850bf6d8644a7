/// Tests the headers of tar files.
#include "client/backup/tar_entry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lightq::cli {
namespace {

using testing::HasSubstr;

TarEntry::Block header(const TarEntry& entry) {
  return tar_header(entry, 1'764'000'000).value_or_throw();
}

/// Returns the header with another byte, and the checksum that it then needs.
TarEntry::Block changed(std::size_t at, char to) {
  TarEntry::Block block = header({"topics/1/a.seg", 65});
  const auto old = std::to_integer<unsigned>(block.at(at));
  block.at(at) = static_cast<std::byte>(to);
  unsigned sum = 0;
  for (std::size_t digit = 148; digit < 154; ++digit)
    sum = sum * 8 + std::to_integer<unsigned>(block.at(digit)) - '0';
  sum = sum - old + static_cast<unsigned char>(to);
  for (std::size_t digit = 154; digit-- > 148; sum /= 8)
    block.at(digit) = static_cast<std::byte>('0' + sum % 8);
  return block;
}

std::string fault_of(const TarEntry::Block& block) {
  const auto parsed = parse_tar_header(block);
  return parsed ? "" : parsed.error().message;
}

TEST(TarEntry, IsReadAsItWasWritten) {
  for (const TarEntry& entry :
       {TarEntry{"backup.json", 0}, TarEntry{std::string(100, 'n'), TarEntry::number_max},
        TarEntry{"topics/17/00000000000000000000.seg", 134'217'728}}) {
    EXPECT_EQ(parse_tar_header(header(entry)).value_or_throw(), entry);
  }
  EXPECT_EQ((TarEntry{"a", 0}.padded_bytes()), 0U);
  EXPECT_EQ((TarEntry{"a", 1}.padded_bytes()), 512U);
  EXPECT_EQ((TarEntry{"a", 512}.padded_bytes()), 512U);
  EXPECT_EQ(parse_tar_header(TarEntry::Block{}).value_or_throw(), std::nullopt);
}

TEST(TarEntry, RefusesWhatAHeaderCannotSay) {
  EXPECT_FALSE(tar_header({"", 1}, 0).ok());
  EXPECT_FALSE(tar_header({std::string(101, 'n'), 1}, 0).ok());
  EXPECT_FALSE(tar_header({"a", TarEntry::number_max + 1}, 0).ok());
}

TEST(TarEntry, RefusesLinksDirectoriesAndExtensions) {
  constexpr std::size_t type_at = 156;
  EXPECT_EQ(fault_of(changed(type_at, '0')), "");
  for (const char type : {'1', '2', '3', '4', '5', '6', '7', 'x', 'g', 'L', 'K', 'S', '\0'})
    EXPECT_THAT(fault_of(changed(type_at, type)), HasSubstr("no plain file")) << type;
  EXPECT_THAT(fault_of(changed(345, '/')), HasSubstr("longer name"));
  EXPECT_THAT(fault_of(changed(157, 'l')), HasSubstr("longer name"));
  EXPECT_THAT(fault_of(changed(124, '9')), HasSubstr("without a length"));
  EXPECT_THAT(fault_of(changed(124, '-')), HasSubstr("without a length"));
  EXPECT_THAT(fault_of(changed(0, '\0')), HasSubstr("without a name"));
}

TEST(TarEntry, EachFlippedBitOfAHeaderIsNoticed) {
  const TarEntry entry{"topics/1/a.seg", 65};
  const TarEntry::Block good = header(entry);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    TarEntry::Block block = good;
    block.at(bit / 8) ^= std::byte{1} << bit % 8;
    const auto parsed = parse_tar_header(block);
    // The digits of the checksum end with a NUL and a space that mean nothing.
    EXPECT_TRUE(!parsed || **parsed == entry) << bit;
    EXPECT_TRUE(bit / 8 >= 148 || !parsed.ok()) << bit;
  }
}

}  // namespace
}  // namespace lightq::cli
