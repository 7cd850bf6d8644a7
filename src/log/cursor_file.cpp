/// Where a topic's groups stand, on disk. docs/log_format.md, "Cursor file". Layer: log.
#include "log/cursor_file.hpp"

#include <cassert>
#include <utility>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/seeded_bug.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t magic_value = 0x0A1A0A0D5255434CULL;  // "LCUR", then bytes that text transfers spoil
constexpr std::uint32_t version_value = 1;
constexpr std::uint64_t file_bytes_max = 64 * limits::MiB;

// Fields, in bytes from the file's start.
constexpr std::size_t at_magic = 0;      // u64
constexpr std::size_t at_version = 8;    // u32
constexpr std::size_t at_crc = 12;       // u32: of everything from at_sequence on
constexpr std::size_t at_sequence = 16;  // u64
constexpr std::size_t at_bytes = 24;     // u32: the whole file, as far as it counts
constexpr std::size_t at_count = 28;     // u32
constexpr std::size_t header_bytes = 32;
// Then each cursor: u64 offset, u16 length of the name, the name.
constexpr std::size_t cursor_bytes = 10;

std::optional<std::vector<NamedCursor>> decode(ByteView bytes, std::uint32_t count) {
  std::vector<NamedCursor> cursors;
  for (; count != 0; --count) {
    if (bytes.size() < cursor_bytes) return std::nullopt;
    const std::size_t length = load_little_endian<std::uint16_t>(bytes.data() + 8);
    if (bytes.size() < cursor_bytes + length) return std::nullopt;
    cursors.push_back({std::string(as_text(bytes.subspan(cursor_bytes, length))),
                       {load_little_endian<std::uint64_t>(bytes.data())}});
    bytes = bytes.subspan(cursor_bytes + length);
  }
  if (!bytes.empty()) return std::nullopt;
  return cursors;
}

}  // namespace

struct CursorFile::Slot {
  bool exists = false;
  std::optional<Error> fault;
  std::uint64_t sequence = 0;
  std::vector<NamedCursor> cursors;
};

CursorFile::CursorFile(Storage& storage, std::string directory, const std::string& name)
    : storage_(storage), directory_(std::move(directory)), name_(name) {}

std::string CursorFile::slot_path(int slot) const {
  return directory_ + "/" + name_ + "." + std::to_string(slot);
}

Result<CursorFile::Slot> CursorFile::read_slot(int slot) {
  Slot found;
  const std::string path = slot_path(slot);
  const auto file = storage_.open(path, OpenMode::read_only);
  if (!file && is_missing(file.error())) return found;
  if (!file) return file.error();
  found.exists = true;
  const auto size = (*file)->size_bytes();
  if (!size) return size.error();
  std::vector<std::byte> bytes(std::min(*size, file_bytes_max));
  const auto came = read_all(**file, bytes, 0);
  if (!came) {
    found.fault = came.error();
    return found;
  }
  bytes.resize(*came);
  found.fault = Error{ErrorCode::corrupt, path + " is torn or damaged", 0};
  if (bytes.size() < header_bytes) return found;
  if (load_little_endian<std::uint64_t>(bytes.data() + at_magic) != magic_value ||
      load_little_endian<std::uint32_t>(bytes.data() + at_version) != version_value) {
    found.fault = Error{ErrorCode::foreign_format, path + " is not a cursor file of version 1", 0};
    return found;
  }
  const auto length = load_little_endian<std::uint32_t>(bytes.data() + at_bytes);
  if (length < header_bytes || bytes.size() < length) return found;
  const ByteView counted = ByteView(bytes).first(length);
  const bool sound =
      load_little_endian<std::uint32_t>(bytes.data() + at_crc) == crc32c(counted.subspan(at_sequence));
  if (!sound && !seeded(SeededBug::cursor_crc_unchecked)) return found;
  auto cursors =
      decode(counted.subspan(header_bytes), load_little_endian<std::uint32_t>(bytes.data() + at_count));
  if (!cursors) return found;
  found.fault.reset();
  found.sequence = load_little_endian<std::uint64_t>(bytes.data() + at_sequence);
  found.cursors = std::move(*cursors);
  return found;
}

Result<std::vector<NamedCursor>> CursorFile::load() {
  passed_over_.reset();
  Slot newest;
  for (int slot = 0; slot < 2; ++slot) {
    auto found = read_slot(slot);
    if (!found) return found.error();
    if (found->fault) passed_over_ = found->fault;
    if (!found->exists || found->fault || (newest.exists && found->sequence < newest.sequence)) continue;
    newest = std::move(*found);
    newest_slot_ = slot;
  }
  if (!newest.exists && passed_over_) return *passed_over_;
  sequence_ = newest.sequence;
  loaded_ = true;
  return std::move(newest.cursors);
}

EncodedCursors CursorFile::encode(const std::vector<NamedCursor>& cursors) {
  std::size_t size = header_bytes;
  for (const NamedCursor& cursor : cursors) size += cursor_bytes + cursor.name.size();
  EncodedCursors encoded{std::vector<std::byte>(size)};
  std::byte* to = encoded.bytes.data();
  store_little_endian(to + at_magic, magic_value);
  store_little_endian(to + at_version, version_value);
  store_little_endian(to + at_bytes, static_cast<std::uint32_t>(size));
  store_little_endian(to + at_count, static_cast<std::uint32_t>(cursors.size()));
  to += header_bytes;
  for (const NamedCursor& cursor : cursors) {
    assert(cursor.name.size() <= 65535);
    store_little_endian(to, cursor.offset.value);
    store_little_endian(to + 8, static_cast<std::uint16_t>(cursor.name.size()));
    std::memcpy(to + cursor_bytes, cursor.name.data(), cursor.name.size());
    to += cursor_bytes + cursor.name.size();
  }
  return encoded;
}

Result<void> CursorFile::write(EncodedCursors cursors) {
  if (!loaded_) {
    // What cannot be read is overwritten, the first slot first; only an unreadable disk stops here.
    if (const auto before = load(); !before && before.error().system_error != 0) return before.error();
    loaded_ = true;
  }
  if (auto kept = keep_newest(); !kept) return kept;
  const int slot = seeded(SeededBug::cursor_in_one_file) ? 0 : 1 - newest_slot_;
  std::byte* bytes = cursors.bytes.data();
  store_little_endian(bytes + at_sequence, sequence_ + 1);
  store_little_endian(bytes + at_crc, crc32c(ByteView(cursors.bytes).subspan(at_sequence)));
  if (auto made = storage_.make_directory(directory_); !made) return made;
  auto file = storage_.open(slot_path(slot), OpenMode::read_write);
  if (!file && is_missing(file.error())) file = storage_.open(slot_path(slot), OpenMode::create);
  if (!file) return file.error();
  if (auto written = write_all(**file, cursors.bytes, 0); !written) return written;
  if (!seeded(SeededBug::cursor_unsynced)) {
    if (auto synced = (*file)->sync(); !synced) return synced;
  }
  if (!slot_named_[slot]) {
    if (auto synced = storage_.sync_directory(directory_); !synced) return synced;
    // The directory itself may be new: cursors can come before the first message.
    if (auto synced = storage_.sync_directory(parent_of(directory_)); !synced) return synced;
    slot_named_[slot] = true;
  }
  newest_slot_ = slot;
  newest_synced_ = true;
  ++sequence_;
  return {};
}

// What a killed process has written last may not be on disk yet, and then the other file, which is written
// over next, is all that a power cut would leave.
Result<void> CursorFile::keep_newest() {
  if (newest_synced_ || sequence_ == 0 || seeded(SeededBug::loaded_cursor_unsynced)) return {};
  const auto file = storage_.open(slot_path(newest_slot_), OpenMode::read_write);
  if (!file) return file.error();
  if (auto synced = (*file)->sync(); !synced) return synced;
  if (auto synced = storage_.sync_directory(directory_); !synced) return synced;
  newest_synced_ = true;
  return {};
}

}  // namespace lightq::log
