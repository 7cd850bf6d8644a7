/// The headers of a tar file. Layer: cli.
#include "client/backup/tar_entry.hpp"

#include <algorithm>
#include <string_view>

namespace lightq::cli {
namespace {

// The places of the fields in a header, and their lengths.
struct Field {
  std::size_t at;
  std::size_t bytes;
};
constexpr Field name_field{0, 100};
constexpr Field mode_field{100, 8};
constexpr Field user_field{108, 8};
constexpr Field group_field{116, 8};
constexpr Field size_field{124, 12};
constexpr Field time_field{136, 12};
constexpr Field checksum_field{148, 8};
constexpr std::size_t type_at = 156;
constexpr Field link_field{157, 100};
constexpr Field magic_field{257, 8};
constexpr Field prefix_field{345, 155};
constexpr char regular_file = '0';
constexpr std::string_view magic("ustar\00000", 8);

std::string_view text_at(std::span<const std::byte> block, Field field) {
  return {reinterpret_cast<const char*>(block.data()) + field.at, field.bytes};
}

void put(TarEntry::Block& block, Field field, std::string_view text) {
  std::ranges::transform(text, block.begin() + static_cast<std::ptrdiff_t>(field.at),
                         [](char c) { return static_cast<std::byte>(c); });
}

/// Writes octal digits that fill the field up to its end, where a NUL stays.
void put_number(TarEntry::Block& block, Field field, std::uint64_t number) {
  for (std::size_t at = field.at + field.bytes - 1; at-- > field.at; number >>= 3U)
    block.at(at) = static_cast<std::byte>('0' + (number & 7U));
}

/// Returns a number of octal digits, which a NUL or a space ends. Nothing: it is none.
std::optional<std::uint64_t> number_at(std::span<const std::byte> block, Field field) {
  std::string_view text = text_at(block, field);
  text = text.substr(0, text.find_first_of(std::string_view("\0 ", 2)));
  std::uint64_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    number = number << 3U | static_cast<std::uint64_t>(digit - '0');
  }
  return text.empty() ? std::nullopt : std::optional(number);
}

/// Returns the sum of all bytes, with spaces in the place of the checksum.
std::uint64_t checksum_of(std::span<const std::byte> block) {
  std::uint64_t sum = checksum_field.bytes * std::uint64_t{' '};
  for (std::size_t at = 0; at < block.size(); ++at) {
    if (at < checksum_field.at || at >= checksum_field.at + checksum_field.bytes)
      sum += std::to_integer<std::uint64_t>(block[at]);
  }
  return sum;
}

Error no_header(const char* why) {
  return {ErrorCode::corrupt, why, 0};
}

}  // namespace

Result<TarEntry::Block> tar_header(const TarEntry& entry, std::uint64_t time_s) {
  if (entry.name.empty() || entry.name.size() > TarEntry::name_bytes_max ||
      entry.bytes > TarEntry::number_max)
    return Error{ErrorCode::too_large, entry.name + " is too long for a tar file", 0};
  constexpr std::uint64_t owner_only = 0600;
  TarEntry::Block block{};
  put(block, name_field, entry.name);
  put_number(block, mode_field, owner_only);
  put_number(block, user_field, 0);
  put_number(block, group_field, 0);
  put_number(block, size_field, entry.bytes);
  put_number(block, time_field, std::min(time_s, TarEntry::number_max));
  block.at(type_at) = static_cast<std::byte>(regular_file);
  put(block, magic_field, magic);
  put_number(block, {checksum_field.at, checksum_field.bytes - 1}, checksum_of(block));
  block.at(checksum_field.at + checksum_field.bytes - 1) = static_cast<std::byte>(' ');
  return block;
}

Result<std::optional<TarEntry>> parse_tar_header(std::span<const std::byte, TarEntry::block_bytes> block) {
  if (std::ranges::all_of(block, [](std::byte each) { return each == std::byte{0}; }))
    return std::optional<TarEntry>();
  if (text_at(block, magic_field) != magic) return no_header("bytes that are no header of a tar file");
  if (number_at(block, checksum_field) != checksum_of(block))
    return no_header("a header with a wrong checksum");
  if (text_at(block, {type_at, 1}).front() != regular_file)
    return no_header("a link, a directory or something else that is no plain file");
  if (text_at(block, prefix_field).front() != '\0' || text_at(block, link_field).front() != '\0')
    return no_header("a longer name than this program writes");
  const auto bytes = number_at(block, size_field);
  if (!bytes || *bytes > TarEntry::number_max) return no_header("a header without a length");
  std::string_view name = text_at(block, name_field);
  name = name.substr(0, name.find('\0'));
  if (name.empty()) return no_header("a header without a name");
  return std::optional(TarEntry{std::string(name), *bytes});
}

}  // namespace lightq::cli
