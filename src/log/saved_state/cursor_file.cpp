/// Writes and reads the cursors of a topic's consumer groups. docs/log_format.md, "Cursor file". Layer: log.
#include "log/saved_state/cursor_file.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>
#include <utility>

#include <lightq/base/bytes.hpp>

namespace lightq::log {

namespace {

// The body holds each cursor as: u64 offset; u16 length of the name; in version 2 u16 number of ranges; the
// name; the ranges.
constexpr std::size_t plain_cursor_bytes = 10;
constexpr std::size_t cursor_bytes = 12;
constexpr std::size_t range_bytes = 16;  // u64 begin, u64 end

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

/// Takes the first cursor from `bytes`. Returns nothing if the bytes there are not a sound cursor.
std::optional<NamedCursor> take_cursor(ByteView& bytes, std::uint32_t version) {
  const std::size_t fixed = version == 1 ? plain_cursor_bytes : cursor_bytes;
  if (bytes.size() < fixed) return std::nullopt;
  const std::size_t length = load_little_endian<std::uint16_t>(bytes.data() + 8);
  const std::size_t ranges = version == 1 ? 0 : load_little_endian<std::uint16_t>(bytes.data() + 10);
  if (ranges > limits::acknowledged_ranges_max) return std::nullopt;
  if (bytes.size() < fixed + length + ranges * range_bytes) return std::nullopt;
  NamedCursor cursor{std::string(as_text(bytes.subspan(fixed, length))),
                     {load_little_endian<std::uint64_t>(bytes.data())}};
  bytes = bytes.subspan(fixed + length);
  if (!take_ranges(bytes, ranges, cursor.offset, cursor.acknowledged)) return std::nullopt;
  return cursor;
}

bool sound(const SlotBytes& slot) {
  ByteView body = slot.body();
  for (std::uint32_t count = slot.count(); count != 0; --count) {
    if (!take_cursor(body, slot.version())) return false;
  }
  return body.empty();
}

constexpr SlotFormat format{"cursor file",
                            0x0A1A0A0D5255434CULL,  // "LCUR", then bytes that text mode corrupts
                            2, 128 * limits::MiB, sound};

/// Returns the ranges that are written: the lowest ones, up to the limit. Messages in the others are
/// delivered again after a restart.
std::span<const OffsetRange> written_ranges(const NamedCursor& cursor) {
  return std::span(cursor.acknowledged)
      .first(std::min(cursor.acknowledged.size(), limits::acknowledged_ranges_max));
}

std::byte* encode_cursor(const NamedCursor& cursor, std::uint32_t version, std::byte* to) {
  assert(cursor.name.size() <= 65535);
  const auto ranges = written_ranges(cursor);
  store_little_endian(to, cursor.offset.value);
  store_little_endian(to + 8, static_cast<std::uint16_t>(cursor.name.size()));
  if (version != 1) store_little_endian(to + 10, static_cast<std::uint16_t>(ranges.size()));
  to += version == 1 ? plain_cursor_bytes : cursor_bytes;
  std::memcpy(to, cursor.name.data(), cursor.name.size());
  to += cursor.name.size();
  [[maybe_unused]] Offset above = cursor.offset;
  for (const OffsetRange& range : ranges) {
    assert(above < range.begin && range.begin < range.end);
    store_little_endian(to, range.begin.value);
    store_little_endian(to + 8, range.end.value);
    to += range_bytes;
    above = range.end;
  }
  return to;
}

std::vector<NamedCursor> take_cursors(const SlotBytes& slot) {
  std::vector<NamedCursor> cursors;
  ByteView body = slot.body();
  while (auto cursor = take_cursor(body, slot.version())) cursors.push_back(std::move(*cursor));
  return cursors;
}

}  // namespace

std::optional<Offset> offset_of_cursor(const std::vector<NamedCursor>& cursors, std::string_view name) {
  const auto found = std::ranges::find(cursors, name, &NamedCursor::name);
  if (found == cursors.end()) return std::nullopt;
  return found->offset;
}

bool NamedCursor::cut_at(Offset end) {
  const NamedCursor before = *this;
  offset = std::min(offset, end);
  while (!acknowledged.empty() && end <= acknowledged.back().begin) acknowledged.pop_back();
  if (!acknowledged.empty()) acknowledged.back().end = std::min(acknowledged.back().end, end);
  return *this != before;
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

// Encodes version 1 when no cursor has ranges, so that brokers older than version 2 can read the file.
EncodedCursors CursorFile::encode(const std::vector<NamedCursor>& cursors) {
  const bool plain =
      std::ranges::all_of(cursors, [](const auto& cursor) { return cursor.acknowledged.empty(); });
  const std::uint32_t version = plain ? 1 : format.version;
  std::size_t size = 0;
  for (const NamedCursor& cursor : cursors) {
    size += (plain ? plain_cursor_bytes : cursor_bytes) + cursor.name.size();
    size += written_ranges(cursor).size() * range_bytes;
  }
  EncodedCursors encoded{SlotFile::make(format, version, size, static_cast<std::uint32_t>(cursors.size()))};
  std::byte* to = encoded.slot.body();
  for (const NamedCursor& cursor : cursors) to = encode_cursor(cursor, version, to);
  return encoded;
}

Result<void> CursorFile::write(EncodedCursors cursors) {
  return slots_.write(std::move(cursors.slot));
}

}  // namespace lightq::log
