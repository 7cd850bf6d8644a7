/// Stores a sealed segment's index on disk and loads it. docs/log_format.md, "Segment index". Layer: log.
#include "log/format/segment_index_file.hpp"

#include <atomic>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>

#include "log/format/segment_scanner.hpp"

namespace lightq::log {

namespace {

// "LIDX", then bytes that a transfer in text mode would change.
constexpr std::uint64_t magic_value = 0x0A1A0A0D5844494CULL;
constexpr std::uint32_t version_value = 1;
constexpr std::string_view name_suffix = ".idx";
constexpr std::string_view segment_suffix = ".seg";

// Fields, in bytes from the file's start.
constexpr std::size_t at_magic = 0;          // u64
constexpr std::size_t at_version = 8;        // u32
constexpr std::size_t at_crc = 12;           // u32: of all bytes from at_epoch on
constexpr std::size_t at_epoch = 16;         // u32
constexpr std::size_t at_count = 20;         // u32
constexpr std::size_t at_incarnation = 24;   // u64
constexpr std::size_t at_first_offset = 32;  // u64
constexpr std::size_t at_end_offset = 40;    // u64
constexpr std::size_t at_end_position = 48;  // u64
constexpr std::size_t at_newest = 56;        // i64
constexpr std::size_t header_bytes = 64;
// Each entry follows: u64 offset, u64 position, i64 newest time.
constexpr std::size_t entry_bytes = 24;
constexpr std::uint64_t file_bytes_max =
    header_bytes + entry_bytes * SegmentIndex::entries_max(8 * limits::GiB);

IndexedBatch entry_at(ByteView bytes, std::size_t index) {
  const std::byte* from = bytes.data() + header_bytes + index * entry_bytes;
  return {{load_little_endian<std::uint64_t>(from)},
          load_little_endian<std::uint64_t>(from + 8),
          {load_little_endian<std::int64_t>(from + 16)}};
}

bool is_of(ByteView bytes, const IndexedSegment& segment) {
  const std::byte* from = bytes.data();
  return load_little_endian<std::uint32_t>(from + at_epoch) == segment.epoch &&
         load_little_endian<std::uint64_t>(from + at_incarnation) == segment.incarnation &&
         load_little_endian<std::uint64_t>(from + at_first_offset) == segment.first_offset.value &&
         load_little_endian<std::uint64_t>(from + at_end_offset) == segment.end_offset.value &&
         load_little_endian<std::uint64_t>(from + at_end_position) == segment.end_position;
}

/// Returns true if the entries ascend, lie within the segment, and none is newer than `newest`.
bool are_sound(std::span<const IndexedBatch> entries, const IndexedSegment& segment, Timestamp newest) {
  std::uint64_t position = segment_header_bytes;
  Offset offset = segment.first_offset;
  Timestamp time = SegmentIndex::before_all;
  for (const IndexedBatch& entry : entries) {
    const bool sound = position <= entry.position && entry.position < segment.end_position &&
                       offset <= entry.offset && entry.offset < segment.end_offset && time <= entry.newest &&
                       entry.newest <= newest;
    if (!sound) return false;
    position = entry.position + SegmentIndex::spacing_bytes;
    offset = entry.offset + 1;
    time = entry.newest;
  }
  return true;
}

Error corrupt(const std::string& name, const std::string& why) {
  return {ErrorCode::corrupt, name + " " + why, 0};
}

}  // namespace

std::vector<std::byte> SegmentIndexFile::encode(const IndexedSegment& segment, const SegmentIndex& index) {
  const auto entries = index.entries();
  std::vector<std::byte> bytes(header_bytes + entries.size() * entry_bytes);
  std::byte* to = bytes.data();
  store_little_endian(to + at_magic, magic_value);
  store_little_endian(to + at_version, version_value);
  store_little_endian(to + at_epoch, segment.epoch);
  store_little_endian(to + at_count, static_cast<std::uint32_t>(entries.size()));
  store_little_endian(to + at_incarnation, segment.incarnation);
  store_little_endian(to + at_first_offset, segment.first_offset.value);
  store_little_endian(to + at_end_offset, segment.end_offset.value);
  store_little_endian(to + at_end_position, segment.end_position);
  store_little_endian(to + at_newest, index.newest().us);
  to += header_bytes;
  for (const IndexedBatch& entry : entries) {
    store_little_endian(to, entry.offset.value);
    store_little_endian(to + 8, entry.position);
    store_little_endian(to + 16, entry.newest.us);
    to += entry_bytes;
  }
  store_little_endian(bytes.data() + at_crc, crc32c(ByteView(bytes).subspan(at_epoch)));
  return bytes;
}

SegmentIndexFile::LoadResult SegmentIndexFile::decode(ByteView bytes, const IndexedSegment& segment,
                                                      const std::string& name) {
  if (bytes.size() < header_bytes) return corrupt(name, "ends within its header");
  if (load_little_endian<std::uint64_t>(bytes.data() + at_magic) != magic_value ||
      load_little_endian<std::uint32_t>(bytes.data() + at_version) != version_value) {
    return Error{ErrorCode::foreign_format, name + " is not a segment index of version 1", 0};
  }
  const std::size_t count = load_little_endian<std::uint32_t>(bytes.data() + at_count);
  if (bytes.size() != header_bytes + count * entry_bytes ||
      load_little_endian<std::uint32_t>(bytes.data() + at_crc) != crc32c(bytes.subspan(at_epoch))) {
    return corrupt(name, "has a wrong checksum");
  }
  if (!is_of(bytes, segment))
    return corrupt(name, "belongs to another segment, or to another state of this one");
  auto index = std::make_unique<SegmentIndex>(segment.end_position);
  if (count > index->capacity_) return corrupt(name, "has more entries than a segment of this size can have");
  for (std::size_t i = 0; i < count; ++i) index->entries_[i] = entry_at(bytes, i);
  const Timestamp newest{load_little_endian<std::int64_t>(bytes.data() + at_newest)};
  if (!are_sound({index->entries_.get(), count}, segment, newest)) {
    return corrupt(name, "has entries out of order");
  }
  index->count_.store(count, std::memory_order_release);
  index->newest_.store(newest.us, std::memory_order_release);
  return index;
}

SegmentIndexFile::LoadResult SegmentIndexFile::load(Storage& storage, const std::string& path,
                                                    const IndexedSegment& segment) {
  const auto file = storage.open(path, OpenMode::read_only);
  if (!file) return file.error();
  const auto size = (*file)->size_bytes();
  if (!size) return size.error();
  if (*size > file_bytes_max) return corrupt(path, "is longer than any index");
  std::vector<std::byte> bytes(*size);
  const auto came = read_all(**file, bytes, 0);
  if (!came) return came.error();
  return decode(ByteView(bytes).first(*came), segment, path);
}

Result<void> SegmentIndexFile::store(Storage& storage, const std::string& path, const IndexedSegment& segment,
                                     const SegmentIndex& index) {
  const std::string unfinished = path + ".new";
  const auto bytes = encode(segment, index);
  {
    const auto file = storage.open(unfinished, OpenMode::create);
    if (!file) return file.error();
    if (auto written = write_all(**file, bytes, 0); !written) return written;
  }
  return storage.rename(unfinished, path);
}

std::unique_ptr<SegmentIndex> SegmentIndexFile::rebuild(File& file, const IndexedSegment& segment) {
  auto index = std::make_unique<SegmentIndex>(segment.end_position);
  const Epochs epochs{segment.epoch, segment.epoch};
  SegmentScanner scanner(file, {epochs, segment.batch_mask}, segment.end_position);
  Offset expected = segment.first_offset;
  for (std::uint64_t position = segment_header_bytes; position < segment.end_position;) {
    auto batch = scanner.header_at(position);
    if (!batch || batch->base != expected) batch = scanner.resume_after(position, expected);
    if (!batch || segment.end_offset < batch->end) break;
    index->note(batch->base, batch->position, batch->time);
    position = batch->end_position();
    expected = batch->end;
  }
  if (scanner.read_error()) return nullptr;
  return index;
}

std::string segment_index_name(Offset first_offset) {
  std::string name = segment_name(first_offset);
  return name.replace(name.size() - name_suffix.size(), name_suffix.size(), name_suffix);
}

std::optional<Offset> segment_index_name_offset(std::string_view name) {
  if (!name.ends_with(name_suffix)) return std::nullopt;
  name.remove_suffix(name_suffix.size());
  return segment_name_offset(std::string(name) + std::string(segment_suffix));
}

}  // namespace lightq::log
