/// The format of `cursors.table`: its first page, and one block for each cursor. Byte by byte:
/// docs/log_format.md, "Cursor table". Layer: log.
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
/// The number of used blocks has a disk sector of its own: it changes, and a torn write must not damage the
/// rest of the page.
inline constexpr std::size_t cursor_table_used_position = 512;
inline constexpr std::size_t cursor_table_used_bytes = 64;

// A cursor's block has four sectors of 512 bytes, so that a torn write damages only one of them.
inline constexpr std::size_t cursor_block_bytes = 2048;
/// Two copies of the committed offset; the delivered offset follows.
inline constexpr std::size_t cursor_live_position = 0;
inline constexpr std::size_t cursor_delivered_position = 64;
inline constexpr std::size_t cursor_durable_position = 512;  ///< two more such copies, each in its own sector
inline constexpr std::size_t cursor_durable_stride = 512;
inline constexpr std::size_t cursor_identity_position = 1536;
inline constexpr std::size_t cursor_identity_bytes = 256;

// One copy of a cursor's position. Both live copies fit into one cache line.
inline constexpr std::size_t cursor_copy_bytes = 32;
inline constexpr std::size_t cursor_copy_at_sequence = 0;   // u64
inline constexpr std::size_t cursor_copy_at_committed = 8;  // u64
inline constexpr std::size_t cursor_copy_at_crc = 16;       // u32: CRC of bytes [0,16), with cursor_copy_seed
inline constexpr std::size_t cursor_copy_checked_bytes = 16;

/// Returns the position of a block in the file.
constexpr std::uint64_t cursor_block_position(std::size_t index) {
  return cursor_table_header_bytes + std::uint64_t{index} * cursor_block_bytes;
}

/// The cursor that a block belongs to.
struct CursorIdentity {
  bool active = false;  ///< false: the block has no cursor and is free for a new one
  /// How many cursors have used the block. It makes copies of earlier cursors invalid.
  std::uint64_t generation = 0;
  std::string name;  ///< at most limits::cursor_name_bytes_max
};

/// The largest valid sequence. No cursor ever reaches it. Copies with a larger sequence count as damaged.
inline constexpr std::uint64_t cursor_sequence_max = ~std::uint64_t{0} >> 1;

/// The content of one copy of a cursor's position.
struct CursorCopy {
  /// Number of commits, from 1. The copy with the highest sequence is valid, even if its offset is lower.
  std::uint64_t sequence = 0;
  Offset committed;
};

/// The content of the first page.
struct CursorTableHeader {
  std::uint64_t incarnation = 0;      ///< incarnation of the log
  std::optional<std::uint32_t> used;  ///< number of blocks that ever had a cursor; empty: damaged
};

/// The fault of a first page.
enum class CursorTableFault {
  none,
  foreign,  ///< unknown magic, version, byte order or required flags
  damaged,  ///< wrong checksum or block size
};

/// Returns a first page that has no block in use.
std::array<std::byte, cursor_table_header_bytes> encode_cursor_table_header(std::uint64_t incarnation);
/// Returns the bytes for cursor_table_used_position.
std::array<std::byte, cursor_table_used_bytes> encode_cursor_table_used(std::uint32_t used,
                                                                        std::uint64_t incarnation);
/// Decodes the first page. Requires: `page` holds at least the first page.
CursorTableFault decode_cursor_table_header(ByteView page, CursorTableHeader& header);

/// Returns the error for a `foreign` first page. The error names the part that this version does not know.
Error foreign_cursor_table(const std::string& path, ByteView page);
/// Returns the error for a table with a block of a kind that this version does not know.
Error newer_cursor(const std::string& path, std::size_t index);
/// Returns the newer_cursor error for the first block of an unknown kind, or nothing if all kinds are known.
std::optional<Error> newer_cursor_in(const std::string& path, ByteView file, std::uint64_t incarnation);

/// Returns the start value of a copy's checksum. A copy of another cursor, block or log has another start
/// value, so it fails the check.
std::uint32_t cursor_copy_seed(const CursorIdentity& identity, std::size_t index, std::uint64_t incarnation);
std::array<std::byte, cursor_copy_bytes> encode_cursor_copy(const CursorCopy& copy, std::uint32_t seed);
/// Returns the copy at `from`, or nothing if it is not sound.
std::optional<CursorCopy> decode_cursor_copy(const std::byte* from, std::uint32_t seed);

std::array<std::byte, cursor_identity_bytes> encode_cursor_identity(const CursorIdentity& identity,
                                                                    std::size_t index,
                                                                    std::uint64_t incarnation);
/// Returns sectors 0 to 2 of a block with a new cursor: the first live copy, the first durable copy and the
/// delivered offset.
std::array<std::byte, cursor_identity_position> encode_new_cursor(const CursorCopy& first,
                                                                  std::uint32_t seed);

/// One cursor of a table that a repair builds (encode_cursor_table).
struct NewCursor {
  std::string name;
  Offset committed;
};
/// Returns a whole table of new cursors, each with its committed offset. Requires: at most
/// limits::cursors_max cursors.
std::vector<std::byte> encode_cursor_table(std::uint64_t incarnation, const std::vector<NewCursor>& cursors);

/// The content of a block, as decoded from a file.
struct DecodedCursor {
  enum class State { blank, unused, active, damaged, newer };
  State state = State::damaged;  ///< state of the identity; blank: all zeros; newer: sound, but unknown
  CursorIdentity identity;       ///< set if unused or active
  // The next fields are set only if the cursor is active.
  std::optional<CursorCopy> newest;   ///< the newest of all sound copies
  std::optional<CursorCopy> durable;  ///< the newest of the sound durable copies
  std::size_t durable_slot = 0;       ///< the slot of the copy `durable`
  Offset delivered;  ///< the last noted value; the committed offset if that value is not sound
  std::vector<std::size_t> bad_copies;  ///< positions in the block of copies that are neither sound nor zero
};
/// Decodes a block. Requires: `block` has cursor_block_bytes bytes.
DecodedCursor decode_cursor_block(ByteView block, std::size_t index, std::uint64_t incarnation);

}  // namespace lightq::log
