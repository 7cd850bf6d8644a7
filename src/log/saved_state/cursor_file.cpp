/// Writes and reads the cursors of a topic's consumer groups. docs/log_format.md, "Cursor file". Layer: log.
#include "log/saved_state/cursor_file.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <lightq/base/bytes.hpp>

#include "log/saved_state/unfinished_code.hpp"

namespace lightq::log {

namespace {

constexpr std::uint32_t plain_version = 1;       // offsets and names only
constexpr std::uint32_t ranges_version = 2;      // with acknowledged ranges; only read
constexpr std::uint32_t unfinished_version = 3;  // with unfinished messages
constexpr std::uint32_t dead_version = 4;        // with dead messages, of which none has expired
constexpr std::uint32_t newest_version = 5;      // with dead messages
constexpr std::uint64_t cursor_file_bytes_max = 128 * limits::MiB;
constexpr std::size_t cursors_memory_max = 512 * limits::MiB;  // of the cursors of one file

// The body holds each cursor as: u64 offset; u16 length of the name; in version 2 u16 number of ranges; the
// name; in version 2 the ranges, from version 3 on the unfinished messages.
constexpr std::size_t plain_cursor_bytes = 10;
constexpr std::size_t ranges_cursor_bytes = 12;
constexpr std::size_t range_bytes = 16;  // u64 begin, u64 end

DeadParts dead_parts_of(std::uint32_t version) {
  if (version < dead_version) return DeadParts::none;
  return version == dead_version ? DeadParts::without_expired : DeadParts::all;
}

/// Takes `count` ranges from `bytes` and appends them to `ranges`. Returns false unless they are above
/// `above`, ascend, and do not touch each other. Requires: `bytes` is long enough for `count` ranges.
bool take_ranges(ByteView& bytes, std::size_t count, Offset above, std::vector<OffsetRange>& ranges) {
  for (; count != 0; --count, bytes = bytes.subspan(range_bytes)) {
    const OffsetRange range{{load_little_endian<std::uint64_t>(bytes.data())},
                            {load_little_endian<std::uint64_t>(bytes.data() + 8)}};
    if (range.begin <= above || range.end <= range.begin) return false;
    ranges.push_back(range);
    above = range.end;
  }
  return true;
}

/// Takes the first cursor from `bytes`, and subtracts about its memory from `memory_left`. Returns nothing if
/// the bytes there are not a sound cursor, or if it takes more memory.
std::optional<NamedCursor> take_cursor(ByteView& bytes, std::uint32_t version, std::size_t& memory_left) {
  const std::size_t fixed = version == ranges_version ? ranges_cursor_bytes : plain_cursor_bytes;
  if (bytes.size() < fixed) return std::nullopt;
  const std::size_t length = load_little_endian<std::uint16_t>(bytes.data() + 8);
  const std::size_t count =
      version == ranges_version ? load_little_endian<std::uint16_t>(bytes.data() + 10) : 0;
  if (count > limits::acknowledged_ranges_max) return std::nullopt;
  if (bytes.size() < fixed + length + count * range_bytes) return std::nullopt;
  const std::size_t own_bytes =
      2 * sizeof(NamedCursor) + length;  // a vector may have room for twice its elements
  if (memory_left < own_bytes) return std::nullopt;
  memory_left -= own_bytes;
  NamedCursor cursor{std::string(as_text(bytes.subspan(fixed, length))),
                     {load_little_endian<std::uint64_t>(bytes.data())}};
  bytes = bytes.subspan(fixed + length);
  if (version == ranges_version) {
    std::vector<OffsetRange> ranges;
    if (!take_ranges(bytes, count, cursor.offset, ranges)) return std::nullopt;
    if (!ranges.empty()) cursor.unfinished = unfinished_between(cursor.offset, ranges);
  } else if (version >= unfinished_version) {
    auto unfinished = take_unfinished(bytes, cursor.offset, dead_parts_of(version), memory_left);
    if (!unfinished) return std::nullopt;
    cursor.unfinished = std::move(*unfinished);
  }
  return cursor;
}

bool sound(const SlotBytes& slot) {
  ByteView body = slot.body();
  std::size_t memory_left = cursors_memory_max;
  for (std::uint32_t count = slot.count(); count != 0; --count) {
    if (!take_cursor(body, slot.version(), memory_left)) return false;
  }
  return body.empty();
}

constexpr SlotFormat format{"cursor file",
                            0x0A1A0A0D5255434CULL,  // "LCUR", then bytes that text mode corrupts
                            newest_version, cursor_file_bytes_max, sound};

void append_cursor(const NamedCursor& cursor, std::uint32_t version, std::vector<std::byte>& to) {
  assert(cursor.name.size() <= 65535);
  const std::size_t at = to.size();
  to.resize(at + plain_cursor_bytes);
  store_little_endian(to.data() + at, cursor.offset.value);
  store_little_endian(to.data() + at + 8, static_cast<std::uint16_t>(cursor.name.size()));
  const ByteView name = as_byte_view(cursor.name);
  to.insert(to.end(), name.begin(), name.end());
  if (version != plain_version)
    append_unfinished(cursor.unfinished, cursor.offset, dead_parts_of(version), to);
}

/// Returns the lowest version that can say everything, so that older brokers can read the file if possible.
std::uint32_t version_for(const std::vector<NamedCursor>& cursors) {
  const auto has_expired = [](const NamedCursor& cursor) { return !cursor.unfinished.dead.expired.empty(); };
  const auto has_dead = [](const NamedCursor& cursor) { return !cursor.unfinished.dead.empty(); };
  if (std::ranges::any_of(cursors, has_expired)) return newest_version;
  if (std::ranges::any_of(cursors, has_dead)) return dead_version;
  return std::ranges::all_of(cursors, &NamedCursor::is_plain) ? plain_version : unfinished_version;
}

std::vector<NamedCursor> take_cursors(const SlotBytes& slot) {
  std::vector<NamedCursor> cursors;
  ByteView body = slot.body();
  std::size_t memory_left = cursors_memory_max;
  while (auto cursor = take_cursor(body, slot.version(), memory_left)) cursors.push_back(std::move(*cursor));
  return cursors;
}

}  // namespace

std::optional<Offset> offset_of_cursor(const std::vector<NamedCursor>& cursors, std::string_view name) {
  const auto found = std::ranges::find(cursors, name, &NamedCursor::name);
  if (found == cursors.end()) return std::nullopt;
  return found->offset;
}

bool NamedCursor::cut_at(Offset end) {
  const bool is_behind = end < offset;
  offset = std::min(offset, end);
  return unfinished.cut_at(end) || is_behind;
}

CursorFile::CursorFile(Storage& storage, std::string directory, const std::string& name)
    : slots_(storage, std::move(directory), name, format) {}

Result<std::vector<NamedCursor>> CursorFile::load(UnreadableSlot unreadable,
                                                  std::vector<NamedCursor>* older) {
  std::optional<SlotBytes> older_slot;
  const auto slot = slots_.load(unreadable, older == nullptr ? nullptr : &older_slot);
  if (!slot) return slot.error();
  if (older_slot) *older = take_cursors(*older_slot);
  return *slot ? take_cursors(**slot) : std::vector<NamedCursor>();
}

EncodedCursors CursorFile::encode(const std::vector<NamedCursor>& cursors) {
  const std::uint32_t version = version_for(cursors);
  std::size_t bytes_max = SlotBytes::header_bytes;
  for (const NamedCursor& cursor : cursors) {
    bytes_max += plain_cursor_bytes + cursor.name.size();
    if (version != plain_version) bytes_max += unfinished_code_bytes_max(cursor.unfinished);
  }
  EncodedCursors encoded{SlotFile::make(format, version, 0, static_cast<std::uint32_t>(cursors.size()))};
  encoded.slot.bytes.reserve(bytes_max);
  for (const NamedCursor& cursor : cursors) append_cursor(cursor, version, encoded.slot.bytes);
  return encoded;
}

// A file above the limit could not be read again.
Result<void> CursorFile::write(EncodedCursors cursors) {
  if (cursors.slot.bytes.size() > cursor_file_bytes_max) {
    return Error{ErrorCode::too_large,
                 "the cursors take " + std::to_string(cursors.slot.bytes.size()) +
                     " bytes, and a cursor file " + "has at most " + std::to_string(cursor_file_bytes_max),
                 0};
  }
  return slots_.write(std::move(cursors.slot));
}

}  // namespace lightq::log
