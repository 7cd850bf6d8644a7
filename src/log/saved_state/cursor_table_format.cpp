/// Encodes and decodes the bytes of `cursors.table`. docs/log_format.md, "Cursor table". Layer: log.
#include "log/saved_state/cursor_table_format.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/newer_format.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t magic_value = 0x0A1A0A0D4254434CULL;  // "LCTB", then bytes that text mode corrupts
constexpr std::uint32_t used_magic = 0x44455355;              // "USED"
constexpr std::uint32_t identity_magic = 0x53525543;          // "CURS"

// Positions in the first page, from the file's start.
constexpr std::size_t at_magic = 0;         // u64
constexpr std::size_t at_version = 8;       // u32
constexpr std::size_t at_block_bytes = 12;  // u32
constexpr std::size_t at_incarnation = 16;  // u64
constexpr std::size_t at_flags = 24;        // u32: no flag is defined yet
constexpr std::size_t at_crc = 60;          // u32: of bytes [0,60)

// Positions in the record of used blocks, from cursor_table_used_position.
constexpr std::size_t used_at_count = 4;        // u32
constexpr std::size_t used_at_incarnation = 8;  // u64
constexpr std::size_t used_at_crc = 60;         // u32: of bytes [0,60)

// Positions in a block's identity, from cursor_identity_position.
constexpr std::size_t identity_at_state = 4;         // u32
constexpr std::size_t identity_at_generation = 8;    // u64
constexpr std::size_t identity_at_incarnation = 16;  // u64
constexpr std::size_t identity_at_index = 24;        // u32
constexpr std::size_t identity_at_length = 28;       // u32
constexpr std::size_t identity_at_name = 32;
constexpr std::size_t identity_at_crc = 252;  // u32: of bytes [0,252)

constexpr std::uint32_t state_unused = 1;
constexpr std::uint32_t state_active = 2;

static_assert(identity_at_name + limits::cursor_name_bytes_max <= identity_at_crc);

bool is_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

DecodedCursor::State decode_identity(const std::byte* from, std::size_t index, std::uint64_t incarnation,
                                     CursorIdentity& identity) {
  const auto state = load_little_endian<std::uint32_t>(from + identity_at_state);
  const auto length = load_little_endian<std::uint32_t>(from + identity_at_length);
  const bool checked =
      load_little_endian<std::uint32_t>(from + identity_at_crc) == crc32c({from, identity_at_crc}) &&
      load_little_endian<std::uint32_t>(from) == identity_magic &&
      load_little_endian<std::uint64_t>(from + identity_at_incarnation) == incarnation &&
      load_little_endian<std::uint32_t>(from + identity_at_index) == index;
  if (checked && state > state_active) return DecodedCursor::State::newer;
  const bool sound = checked && state != 0 && length <= limits::cursor_name_bytes_max &&
                     (state == state_unused || length != 0);
  if (!sound) return DecodedCursor::State::damaged;
  identity.active = state == state_active;
  identity.generation = load_little_endian<std::uint64_t>(from + identity_at_generation);
  identity.name = as_text({from + identity_at_name, length});
  return identity.active ? DecodedCursor::State::active : DecodedCursor::State::unused;
}

/// Decodes all four copies of a block.
void decode_copies(ByteView block, std::uint32_t seed, DecodedCursor& decoded) {
  const auto look = [&](std::size_t position) -> std::optional<CursorCopy> {
    const ByteView bytes = block.subspan(position, cursor_copy_bytes);
    auto copy = decode_cursor_copy(bytes.data(), seed);
    const bool live = position < cursor_durable_position;
    if (copy && live && (copy->sequence & 1) * cursor_copy_bytes != position) copy.reset();
    if (!copy && !is_zero(bytes)) decoded.bad_copies.push_back(position);
    if (copy && (!decoded.newest || decoded.newest->sequence < copy->sequence)) decoded.newest = copy;
    return copy;
  };
  for (std::size_t slot = 0; slot < 2; ++slot) {
    look(cursor_live_position + slot * cursor_copy_bytes);
    const auto durable = look(cursor_durable_position + slot * cursor_durable_stride);
    if (!durable || (decoded.durable && durable->sequence <= decoded.durable->sequence)) continue;
    decoded.durable = durable;
    decoded.durable_slot = slot;
  }
}

}  // namespace

std::array<std::byte, cursor_table_header_bytes> encode_cursor_table_header(std::uint64_t incarnation) {
  std::array<std::byte, cursor_table_header_bytes> page{};
  store_little_endian(page.data() + at_magic, magic_value);
  store_little_endian(page.data() + at_version, cursor_table_version);
  store_little_endian(page.data() + at_block_bytes, static_cast<std::uint32_t>(cursor_block_bytes));
  store_little_endian(page.data() + at_incarnation, incarnation);
  store_little_endian(page.data() + at_crc, crc32c({page.data(), at_crc}));
  const auto used = encode_cursor_table_used(0, incarnation);
  std::copy(used.begin(), used.end(), page.begin() + cursor_table_used_position);
  return page;
}

std::array<std::byte, cursor_table_used_bytes> encode_cursor_table_used(std::uint32_t used,
                                                                        std::uint64_t incarnation) {
  std::array<std::byte, cursor_table_used_bytes> bytes{};
  store_little_endian(bytes.data(), used_magic);
  store_little_endian(bytes.data() + used_at_count, used);
  store_little_endian(bytes.data() + used_at_incarnation, incarnation);
  store_little_endian(bytes.data() + used_at_crc, crc32c({bytes.data(), used_at_crc}));
  return bytes;
}

CursorTableFault decode_cursor_table_header(ByteView page, CursorTableHeader& header) {
  const std::byte* from = page.data();
  if (load_little_endian<std::uint64_t>(from + at_magic) != magic_value ||
      load_little_endian<std::uint32_t>(from + at_version) != cursor_table_version) {
    return CursorTableFault::foreign;
  }
  if (load_little_endian<std::uint32_t>(from + at_crc) != crc32c({from, at_crc}) ||
      load_little_endian<std::uint32_t>(from + at_block_bytes) != cursor_block_bytes) {
    return CursorTableFault::damaged;
  }
  if (required_flags(load_little_endian<std::uint32_t>(from + at_flags)) != 0)
    return CursorTableFault::foreign;
  header.incarnation = load_little_endian<std::uint64_t>(from + at_incarnation);
  const std::byte* used = from + cursor_table_used_position;
  if (load_little_endian<std::uint32_t>(used) == used_magic &&
      load_little_endian<std::uint32_t>(used + used_at_crc) == crc32c({used, used_at_crc}) &&
      load_little_endian<std::uint64_t>(used + used_at_incarnation) == header.incarnation) {
    header.used = load_little_endian<std::uint32_t>(used + used_at_count);
  }
  return CursorTableFault::none;
}

Error foreign_cursor_table(const std::string& path, ByteView page) {
  const auto version = load_little_endian<std::uint32_t>(page.data() + at_version);
  const std::string known = std::to_string(cursor_table_version);
  if (load_little_endian<std::uint64_t>(page.data() + at_magic) != magic_value || version == 0)
    return {ErrorCode::foreign_format, path + " is not a cursor table of version " + known, 0};
  const std::string what = path + " is a cursor table of version " + std::to_string(version);
  if (version != cursor_table_version) return newer_format(what + ", not " + known);
  const auto flags = load_little_endian<std::uint32_t>(page.data() + at_flags);
  return newer_format(what + " with flags " + hexadecimal(flags) + " at position " +
                      std::to_string(at_flags) + ", which this version does not know");
}

Error newer_cursor(const std::string& path, std::size_t index) {
  const std::uint64_t position = cursor_block_position(index) + cursor_identity_position;
  return newer_format(path + " is a cursor table of version " + std::to_string(cursor_table_version) +
                      " with a cursor at position " + std::to_string(position) +
                      " of a kind that this version does not know");
}

std::optional<Error> newer_cursor_in(const std::string& path, ByteView file, std::uint64_t incarnation) {
  for (std::size_t index = 0; cursor_block_position(index + 1) <= file.size(); ++index) {
    const ByteView block = file.subspan(cursor_block_position(index), cursor_block_bytes);
    const bool is_newer = decode_cursor_block(block, index, incarnation).state == DecodedCursor::State::newer;
    if (is_newer) return newer_cursor(path, index);
  }
  return std::nullopt;
}

std::uint32_t cursor_copy_seed(const CursorIdentity& identity, std::size_t index, std::uint64_t incarnation) {
  std::array<std::byte, 20> bound{};
  store_little_endian(bound.data(), incarnation);
  store_little_endian(bound.data() + 8, identity.generation);
  store_little_endian(bound.data() + 16, static_cast<std::uint32_t>(index));
  return crc32c(as_byte_view(identity.name), crc32c(bound));
}

std::array<std::byte, cursor_copy_bytes> encode_cursor_copy(const CursorCopy& copy, std::uint32_t seed) {
  std::array<std::byte, cursor_copy_bytes> bytes{};
  store_little_endian(bytes.data() + cursor_copy_at_sequence, copy.sequence);
  store_little_endian(bytes.data() + cursor_copy_at_committed, copy.committed.value);
  store_little_endian(bytes.data() + cursor_copy_at_crc,
                      crc32c({bytes.data(), cursor_copy_checked_bytes}, seed));
  return bytes;
}

std::optional<CursorCopy> decode_cursor_copy(const std::byte* from, std::uint32_t seed) {
  const CursorCopy copy{load_little_endian<std::uint64_t>(from + cursor_copy_at_sequence),
                        {load_little_endian<std::uint64_t>(from + cursor_copy_at_committed)}};
  const auto crc = load_little_endian<std::uint32_t>(from + cursor_copy_at_crc);
  const bool in_range = copy.sequence - 1 < cursor_sequence_max;
  if (!in_range || crc != crc32c({from, cursor_copy_checked_bytes}, seed)) return std::nullopt;
  return copy;
}

std::array<std::byte, cursor_identity_bytes> encode_cursor_identity(const CursorIdentity& identity,
                                                                    std::size_t index,
                                                                    std::uint64_t incarnation) {
  assert(identity.name.size() <= limits::cursor_name_bytes_max);
  std::array<std::byte, cursor_identity_bytes> bytes{};
  std::byte* to = bytes.data();
  store_little_endian(to, identity_magic);
  store_little_endian(to + identity_at_state, identity.active ? state_active : state_unused);
  store_little_endian(to + identity_at_generation, identity.generation);
  store_little_endian(to + identity_at_incarnation, incarnation);
  store_little_endian(to + identity_at_index, static_cast<std::uint32_t>(index));
  store_little_endian(to + identity_at_length, static_cast<std::uint32_t>(identity.name.size()));
  std::memcpy(to + identity_at_name, identity.name.data(), identity.name.size());
  store_little_endian(to + identity_at_crc, crc32c({to, identity_at_crc}));
  return bytes;
}

std::array<std::byte, cursor_identity_position> encode_new_cursor(const CursorCopy& first,
                                                                  std::uint32_t seed) {
  std::array<std::byte, cursor_identity_position> bytes{};
  const auto copy = encode_cursor_copy(first, seed);
  const std::size_t live_slot = cursor_live_position + (first.sequence & 1) * cursor_copy_bytes;
  std::memcpy(bytes.data() + live_slot, copy.data(), copy.size());
  std::memcpy(bytes.data() + cursor_durable_position, copy.data(), copy.size());
  store_little_endian(bytes.data() + cursor_delivered_position, first.committed.value);
  store_little_endian(bytes.data() + cursor_delivered_position + 8, ~first.committed.value);
  return bytes;
}

std::vector<std::byte> encode_cursor_table(std::uint64_t incarnation, const std::vector<NewCursor>& cursors) {
  std::vector<std::byte> bytes(cursor_block_position(cursors.size()));
  const auto put = [&](const auto& part, std::uint64_t position) {
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(position));
  };
  put(encode_cursor_table_header(incarnation), 0);
  put(encode_cursor_table_used(static_cast<std::uint32_t>(cursors.size()), incarnation),
      cursor_table_used_position);
  for (std::size_t index = 0; index < cursors.size(); ++index) {
    const CursorIdentity identity{true, 1, cursors[index].name};
    const std::uint32_t seed = cursor_copy_seed(identity, index, incarnation);
    put(encode_new_cursor({1, cursors[index].committed}, seed), cursor_block_position(index));
    put(encode_cursor_identity(identity, index, incarnation),
        cursor_block_position(index) + cursor_identity_position);
  }
  return bytes;
}

DecodedCursor decode_cursor_block(ByteView block, std::size_t index, std::uint64_t incarnation) {
  assert(block.size() == cursor_block_bytes);
  DecodedCursor decoded;
  const ByteView identity = block.subspan(cursor_identity_position, cursor_identity_bytes);
  if (is_zero(identity)) {
    decoded.state = DecodedCursor::State::blank;
    return decoded;
  }
  decoded.state = decode_identity(identity.data(), index, incarnation, decoded.identity);
  if (decoded.state != DecodedCursor::State::active) return decoded;
  decode_copies(block, cursor_copy_seed(decoded.identity, index, incarnation), decoded);
  if (!decoded.newest) return decoded;
  const std::byte* delivered = block.data() + cursor_delivered_position;
  const auto value = load_little_endian<std::uint64_t>(delivered);
  const bool is_sound = value == ~load_little_endian<std::uint64_t>(delivered + 8);
  decoded.delivered = is_sound ? Offset{value} : decoded.newest->committed;
  return decoded;
}

}  // namespace lightq::log
