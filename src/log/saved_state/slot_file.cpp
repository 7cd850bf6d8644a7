/// Two small files that are written in turn. docs/log_format.md, "Slot files". Layer: log.
#include "log/saved_state/slot_file.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/limits.hpp>

#include "log/newer_format.hpp"

namespace lightq::log {

namespace {

// Fields, in bytes from the file's start.
constexpr std::size_t at_magic = 0;      // u64
constexpr std::size_t at_version = 8;    // u32
constexpr std::size_t at_crc = 12;       // u32: of all bytes from at_sequence on
constexpr std::size_t at_sequence = 16;  // u64
constexpr std::size_t at_bytes = 24;     // u32: the valid length of the file
constexpr std::size_t at_count = 28;     // u32

std::uint32_t byte_swapped(std::uint32_t value) {
  return value << 24 | (value & 0xFF00) << 8 | (value >> 8 & 0xFF00) | value >> 24;
}

std::uint64_t byte_swapped(std::uint64_t value) {
  const auto half = [](std::uint64_t bits) {
    return std::uint64_t{byte_swapped(static_cast<std::uint32_t>(bits))};
  };
  return half(value) << 32 | half(value >> 32);
}

// Version 1 did not include the version in its checksum, as there was no other version to confuse it with.
std::uint32_t checksum(ByteView slot) {
  const bool with_version = load_little_endian<std::uint32_t>(slot.data() + at_version) != 1;
  const std::uint32_t before = with_version ? crc32c(slot.subspan(at_version, 4)) : 0;
  return crc32c(slot.subspan(at_sequence), before);
}

// Writes the bytes that a file has.
Result<void> write_again(File& file) {
  std::vector<std::byte> piece(64 * limits::KiB);
  for (std::uint64_t at = 0;; at += piece.size()) {
    const auto came = read_all(file, piece, at);
    if (!came) return came.error();
    if (auto written = write_all(file, ByteView(piece).first(*came), at); !written) return written;
    if (*came < piece.size()) return {};
  }
}

}  // namespace

std::uint32_t SlotBytes::count() const {
  return load_little_endian<std::uint32_t>(bytes.data() + at_count);
}

std::uint32_t SlotBytes::version() const {
  return load_little_endian<std::uint32_t>(bytes.data() + at_version);
}

struct SlotFile::Slot {
  bool exists = false;
  std::optional<Error> fault;
  std::uint64_t sequence = 0;
  SlotBytes content;
};

SlotFile::SlotFile(Storage& storage, std::string directory, std::string name, const SlotFormat& format)
    : storage_(storage), directory_(std::move(directory)), name_(std::move(name)), format_(format) {}

std::string SlotFile::slot_path(int slot) const {
  return directory_ + "/" + name_ + "." + std::to_string(slot);
}

// Every version has length and checksum at the same positions, so a newer version's file differs from a torn
// one.
bool SlotFile::is_newer(const SlotBytes& slot) const {
  const ByteView bytes = slot.bytes;
  if (bytes.size() < SlotBytes::header_bytes || slot.version() <= format_.version) return false;
  if (load_little_endian<std::uint64_t>(bytes.data() + at_magic) != format_.magic) return false;
  const auto length = load_little_endian<std::uint32_t>(bytes.data() + at_bytes);
  return SlotBytes::header_bytes <= length && length <= bytes.size() &&
         load_little_endian<std::uint32_t>(bytes.data() + at_crc) == checksum(bytes.first(length));
}

// Returns why the slot cannot be used, or nothing. Trusts no length that exceeds the bytes there, and no
// entry before the checksum is right. Cuts off leftovers of an earlier, longer content.
std::optional<Error> SlotFile::fault_of(const std::string& path, SlotBytes& slot) const {
  const auto fault = [&](ErrorCode code, std::size_t position, const std::string& why) {
    return Error{code, path + ": position " + std::to_string(position) + ": " + why, 0};
  };
  const std::string what(format_.what);
  const ByteView bytes = slot.bytes;
  if (bytes.size() < SlotBytes::header_bytes)
    return fault(ErrorCode::corrupt, bytes.size(), "the file ends within its header: torn or damaged");
  const auto magic = load_little_endian<std::uint64_t>(bytes.data() + at_magic);
  if (magic == byte_swapped(format_.magic))
    return fault(ErrorCode::foreign_format, at_magic, "a " + what + " of the other byte order");
  if (magic != format_.magic) return fault(ErrorCode::foreign_format, at_magic, "not a " + what);
  if (slot.version() == 0 || slot.version() > format_.version) {
    const std::string known = (format_.version == 1 ? "" : "1 to ") + std::to_string(format_.version);
    const Error unknown =
        fault(ErrorCode::foreign_format, at_version,
              "a " + what + " of version " + std::to_string(slot.version()) + ", not " + known);
    return is_newer(slot) ? newer_format(unknown.message) : unknown;
  }
  const auto length = load_little_endian<std::uint32_t>(bytes.data() + at_bytes);
  if (length < SlotBytes::header_bytes || bytes.size() < length) {
    return fault(ErrorCode::corrupt, at_bytes,
                 "the header states " + std::to_string(length) + " bytes, but the file has " +
                     std::to_string(bytes.size()) + ": torn or damaged");
  }
  if (load_little_endian<std::uint32_t>(bytes.data() + at_crc) != checksum(bytes.first(length)))
    return fault(ErrorCode::corrupt, at_crc, "wrong checksum: torn or damaged");
  slot.bytes.resize(length);
  if (!format_.sound(slot))
    return fault(ErrorCode::corrupt, at_count, "its entries are invalid in a " + what);
  return std::nullopt;
}

Result<SlotFile::Slot> SlotFile::read_slot(int slot, UnreadableSlot unreadable) {
  Slot found;
  const std::string path = slot_path(slot);
  const auto file = storage_.open(path, OpenMode::read_only);
  if (!file && is_missing(file.error())) return found;
  if (!file) return file.error();
  found.exists = true;
  const auto size = (*file)->size_bytes();
  if (!size) return size.error();
  std::vector<std::byte>& bytes = found.content.bytes;
  bytes.resize(std::min(*size, format_.file_bytes_max));
  const auto came = read_all(**file, bytes, 0);
  if (!came && unreadable == UnreadableSlot::refuses) return came.error();
  if (!came) {
    found.fault = came.error();
    return found;
  }
  bytes.resize(*came);
  found.fault = fault_of(path, found.content);
  newer_found_ = found.fault && is_newer(found.content);
  if (newer_found_) return *found.fault;
  if (found.fault) return found;
  found.sequence = load_little_endian<std::uint64_t>(bytes.data() + at_sequence);
  return found;
}

Result<std::optional<SlotBytes>> SlotFile::load(UnreadableSlot unreadable, std::optional<SlotBytes>* older) {
  passed_over_.reset();
  unsound_.clear();
  newer_found_ = false;
  Slot newest;
  for (int slot = 0; slot < 2; ++slot) {
    auto found = read_slot(slot, unreadable);
    if (!found) return found.error();
    // The error of an unknown version takes precedence over that of a torn slot, because such a file must not
    // be taken for an empty one.
    const bool keep = passed_over_ && passed_over_->code == ErrorCode::foreign_format;
    if (found->fault && !keep) passed_over_ = found->fault;
    if (found->fault) unsound_.push_back(name_ + "." + std::to_string(slot));
    if (!found->exists || found->fault) continue;
    const bool is_newest = !newest.exists || newest.sequence <= found->sequence;
    if (is_newest) std::swap(newest, *found);
    if (is_newest) newest_slot_ = slot;
    if (older != nullptr && found->exists) *older = std::move(found->content);
  }
  if (!newest.exists && passed_over_) return *passed_over_;
  sequence_ = newest.sequence;
  loaded_ = true;
  if (!newest.exists) return std::optional<SlotBytes>();
  return std::optional(std::move(newest.content));
}

SlotBytes SlotFile::make(const SlotFormat& format, std::uint32_t version, std::size_t body_bytes,
                         std::uint32_t count) {
  SlotBytes slot{std::vector<std::byte>(SlotBytes::header_bytes + body_bytes)};
  store_little_endian(slot.bytes.data() + at_magic, format.magic);
  store_little_endian(slot.bytes.data() + at_version, version);
  store_little_endian(slot.bytes.data() + at_bytes, static_cast<std::uint32_t>(slot.bytes.size()));
  store_little_endian(slot.bytes.data() + at_count, count);
  return slot;
}

Result<void> SlotFile::write(SlotBytes slot) {
  if (!loaded_) {
    // Unsound files are overwritten, the first slot first. Only a disk that cannot be read and a newer
    // version's file are errors here.
    const auto before = load();
    if (!before && (before.error().system_error != 0 || newer_found_)) return before.error();
    loaded_ = true;
  }
  if (auto kept = keep_newest(); !kept) return kept;
  const int next = 1 - newest_slot_;
  std::byte* bytes = slot.bytes.data();
  store_little_endian(bytes + at_sequence, sequence_ + 1);
  store_little_endian(bytes + at_bytes, static_cast<std::uint32_t>(slot.bytes.size()));
  store_little_endian(bytes + at_crc, checksum(slot.bytes));
  if (auto made = storage_.make_directory(directory_); !made) return made;
  if (auto written = write_slot(next, slot.bytes); !written) return written;
  if (!slot_named_[next]) {
    if (auto synced = storage_.sync_directory(directory_); !synced) return synced;
    // The directory itself may be new, because this may be called before the first message is appended.
    if (auto synced = storage_.sync_directory(parent_of(directory_)); !synced) return synced;
    slot_named_[next] = true;
  }
  newest_slot_ = next;
  newest_synced_ = true;
  ++sequence_;
  return {};
}

// Renames a new file only once it is complete. A power cut could tear it, and the torn file would be taken
// for damage, as there is no other slot yet.
Result<void> SlotFile::write_slot(int slot, ByteView bytes) {
  const std::string path = slot_path(slot);
  auto file = storage_.open(path, OpenMode::read_write);
  const bool is_new = !file && is_missing(file.error());
  if (is_new) file = storage_.open(path + ".new", OpenMode::create);
  if (!file) return file.error();
  if (auto written = write_all(**file, bytes, 0); !written) return written;
  if (auto synced = (*file)->sync(); !synced) return synced;
  if (!is_new) return {};
  slot_named_[slot] = false;
  return storage_.rename(path + ".new", path);
}

// Makes the newest slot of an earlier process durable. It may not be on disk yet, and the other slot, which
// is overwritten next, would then be all that a power cut leaves. The same bytes are written again: after a
// failed sync of that process the system may take pages for clean that are not on disk.
Result<void> SlotFile::keep_newest() {
  if (newest_synced_ || sequence_ == 0) return {};
  const auto file = storage_.open(slot_path(newest_slot_), OpenMode::read_write);
  if (!file) return file.error();
  if (auto written = write_again(**file); !written) return written;
  if (auto synced = (*file)->sync(); !synced) return synced;
  if (auto synced = storage_.sync_directory(directory_); !synced) return synced;
  newest_synced_ = true;
  return {};
}

Result<void> SlotFile::remove() {
  for (int slot = 0; slot < 2; ++slot) {
    const auto removed = storage_.unlink(slot_path(slot));
    if (!removed && !is_missing(removed.error())) return removed;
    slot_named_[slot] = false;
  }
  newest_slot_ = 1;
  newest_synced_ = false;
  sequence_ = 0;
  loaded_ = true;
  return storage_.sync_directory(directory_);
}

}  // namespace lightq::log
