/// The bytes of `cursors.table`: its first page, and each cursor's block. Byte by byte: docs/log_format.md,
/// "Cursor table". Layer: log.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

inline constexpr std::size_t cursor_table_header_bytes = 4096;
inline constexpr std::uint32_t cursor_table_version = 1;
/// How many blocks have been used lies in a sector of its own, because it changes.
inline constexpr std::size_t cursor_table_used_position = 512;
inline constexpr std::size_t cursor_table_used_bytes = 64;

// A cursor's block: four sectors of 512 bytes, so that what is torn is one of them.
inline constexpr std::size_t cursor_block_bytes = 2048;
inline constexpr std::size_t cursor_live_position = 0;  ///< two copies, then how far was delivered
inline constexpr std::size_t cursor_delivered_position = 64;
inline constexpr std::size_t cursor_durable_position = 512;  ///< two copies, each in its own sector
inline constexpr std::size_t cursor_durable_stride = 512;
inline constexpr std::size_t cursor_identity_position = 1536;
inline constexpr std::size_t cursor_identity_bytes = 256;

// One copy of where a cursor stands: both live ones in one cache line.
inline constexpr std::size_t cursor_copy_bytes = 32;
inline constexpr std::size_t cursor_copy_at_sequence = 0;   // u64
inline constexpr std::size_t cursor_copy_at_committed = 8;  // u64
inline constexpr std::size_t cursor_copy_at_crc = 16;       // u32: of bytes [0,16), bound to the cursor
inline constexpr std::size_t cursor_copy_checked_bytes = 16;

/// Where a block lies in the file.
constexpr std::uint64_t cursor_block_position(std::size_t index) {
  return cursor_table_header_bytes + std::uint64_t{index} * cursor_block_bytes;
}

/// Whose a block is.
struct CursorIdentity {
  bool active = false;           ///< false: nobody's; the block may be given to a new cursor
  std::uint64_t generation = 0;  ///< counts the block's cursors, so that nothing of an earlier one counts
  std::string name;              ///< at most limits::cursor_name_bytes_max
};

/// No log lives to see it; above it nobody counts on.
inline constexpr std::uint64_t cursor_sequence_max = ~std::uint64_t{0} >> 1;

/// What one copy says.
struct CursorCopy {
  std::uint64_t sequence =
      0;  ///< counts commits, from 1 to cursor_sequence_max: the highest counts, whatever its offset
  Offset committed;
};

/// What the first page says.
struct CursorTableHeader {
  std::uint64_t incarnation = 0;      ///< of the log
  std::optional<std::uint32_t> used;  ///< blocks that have ever had a cursor; nothing if that is damaged
};

/// What is wrong with a first page.
enum class CursorTableFault {
  none,
  foreign,  ///< another magic, version or byte order, or required flags that this version does not know
  damaged,  ///< checksum
};

/// A first page, with no block used.
std::array<std::byte, cursor_table_header_bytes> encode_cursor_table_header(std::uint64_t incarnation);
/// What belongs at cursor_table_used_position.
std::array<std::byte, cursor_table_used_bytes> encode_cursor_table_used(std::uint32_t used,
                                                                        std::uint64_t incarnation);
/// `page` is at least the first page.
CursorTableFault decode_cursor_table_header(ByteView page, CursorTableHeader& header);

/// The error for a `foreign` first page: what of it this version does not know.
Error foreign_cursor_table(const std::string& path, ByteView page);
/// The error for a table whose block is of a kind that this version does not know.
Error newer_cursor(const std::string& path, std::size_t index);
/// The error for a table that has a block of a kind that this version does not know, if it has one.
std::optional<Error> newer_cursor_in(const std::string& path, ByteView file, std::uint64_t incarnation);

/// What a copy's checksum begins with, so that copies of other cursors, blocks or logs do not count.
std::uint32_t cursor_copy_seed(const CursorIdentity& identity, std::size_t index, std::uint64_t incarnation);
std::array<std::byte, cursor_copy_bytes> encode_cursor_copy(const CursorCopy& copy, std::uint32_t seed);
/// The copy at `from`, if it is sound.
std::optional<CursorCopy> decode_cursor_copy(const std::byte* from, std::uint32_t seed);

std::array<std::byte, cursor_identity_bytes> encode_cursor_identity(const CursorIdentity& identity,
                                                                    std::size_t index,
                                                                    std::uint64_t incarnation);
/// Sectors 0 to 2 of a block with a new cursor in it: the first live and the first durable copy.
std::array<std::byte, cursor_identity_position> encode_new_cursor(const CursorCopy& first,
                                                                  std::uint32_t seed);

/// A whole table of new cursors, as a repair makes it: each at its place. At most limits::cursors_max of
/// them.
struct NewCursor {
  std::string name;
  Offset committed;
};
std::vector<std::byte> encode_cursor_table(std::uint64_t incarnation, const std::vector<NewCursor>& cursors);

/// A block as found.
struct DecodedCursor {
  enum class State { blank, unused, active, damaged, newer };
  State state = State::damaged;  ///< of the identity; blank: all zero; newer: sound, of a kind not known here
  CursorIdentity identity;       ///< of an unused or active one
  // For an active one:
  std::optional<CursorCopy> newest;     ///< of all sound copies
  std::optional<CursorCopy> durable;    ///< the newest of the sound durable ones
  std::size_t durable_slot = 0;         ///< where that is
  Offset delivered;                     ///< as noted last; if that is not sound, what was committed
  std::vector<std::size_t> bad_copies;  ///< positions in the block of copies that are neither sound nor zero
};
/// `block` is cursor_block_bytes long.
DecodedCursor decode_cursor_block(ByteView block, std::size_t index, std::uint64_t incarnation);

}  // namespace lightq::log
