/// Segment files that wait to be written again. Layer: log.
#include "log/segment_pool.hpp"

#include <algorithm>
#include <charconv>

#include "log/seeded_bug.hpp"

namespace lightq::log {

namespace {

constexpr std::string_view suffix = ".free";

std::uint32_t next_epoch(std::uint32_t epoch) {
  if (seeded(SeededBug::recycled_epoch_kept)) return epoch;
  return epoch + 1 == 0 ? 1 : epoch + 1;
}

}  // namespace

SegmentPool::SegmentPool(SegmentPoolOptions options, Storage& storage)
    : options_(std::move(options)), storage_(storage) {}

// Pool files are named `<number>.free`. A broker without durable topics never looks. mutex_ is held.
void SegmentPool::load_once() {
  if (loaded_) return;
  loaded_ = true;
  const auto names = storage_.list(options_.directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(suffix)) continue;
    std::uint64_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    next_number_ = std::max(next_number_, number + 1);
    const std::string path = options_.directory + "/" + name;
    const auto file = storage_.open(path, OpenMode::read_only);
    if (!file) continue;
    const auto size = (*file)->size_bytes();
    if (!size) continue;
    entries_.push_back({path, *size, nullptr});
    bytes_ += *size;
  }
}

std::size_t SegmentPool::files() {
  const std::lock_guard lock(mutex_);
  load_once();
  return entries_.size();
}

std::optional<SegmentPool::Entry> SegmentPool::take(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  load_once();
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.bytes == bytes; });
  if (found == entries_.end()) return std::nullopt;
  Entry entry = std::move(*found);
  entries_.erase(found);
  bytes_ -= entry.bytes;
  return entry;
}

// A path for one more file of `bytes`; nothing if the pool is full.
std::optional<std::string> SegmentPool::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  load_once();
  if (entries_.size() >= options_.files_max || bytes_ + bytes > options_.bytes_max) return std::nullopt;
  bytes_ += bytes;
  return options_.directory + "/" + std::to_string(next_number_++) + std::string(suffix);
}

// A snapshot holds the file too. Asked of the name in the pool: no further link can be made by the old one.
bool SegmentPool::has_other_names(const std::string& path) {
  const auto links = storage_.link_count(path);
  return !links || *links > 1;
}

// The first files of a log are small, and no log asks for such again once it has grown.
std::optional<SegmentPool::Entry> SegmentPool::take_smaller(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  load_once();
  if (entries_.size() < options_.files_max && bytes_ + bytes <= options_.bytes_max) return std::nullopt;
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.bytes < bytes; });
  if (found == entries_.end()) return std::nullopt;
  Entry entry = std::move(*found);
  entries_.erase(found);
  bytes_ -= entry.bytes;
  return entry;
}

Result<void> SegmentPool::retire(const std::string& path, std::uint64_t bytes,
                                 std::shared_ptr<WritableMapping> mapping) {
  if (const auto smaller = take_smaller(bytes)) static_cast<void>(storage_.unlink(smaller->path));
  if (const auto place = reserve(bytes)) {
    Result<void> moved = storage_.make_directory(options_.directory);
    if (moved) moved = storage_.rename(path, *place);
    // The old name must be gone for good before the file is written again: a power cut must not give a log
    // back a file that has become another's.
    const bool renamed = moved.ok();
    if (moved && !seeded(SeededBug::retired_name_unsynced))
      moved = storage_.sync_directory(path.substr(0, path.find_last_of('/')));
    const bool shared = moved && has_other_names(*place);
    const std::lock_guard lock(mutex_);
    if (moved && !shared) {
      entries_.push_back({*place, bytes, std::move(mapping)});
      return {};
    }
    bytes_ -= bytes;
    if (renamed) return storage_.unlink(*place);
    if (is_missing(moved.error())) return {};
  }
  return remove(path);
}

Result<void> SegmentPool::remove(const std::string& path) {
  const Result<void> removed = storage_.unlink(path);
  if (!removed && !is_missing(removed.error())) return removed;
  return {};
}

Result<PreparedSegment> SegmentPool::prepare(const std::string& path, std::uint64_t bytes,
                                             std::uint64_t incarnation, std::uint64_t free_bytes_floor) {
  while (const auto entry = take(bytes)) {
    auto recycled = recycle(*entry, path, incarnation);
    if (recycled) return recycled;
    static_cast<void>(storage_.unlink(entry->path));  // one bad file must not be tried for ever
  }
  return create(path, bytes, incarnation, free_bytes_floor);
}

Result<PreparedSegment> SegmentPool::recycle(const Entry& entry, const std::string& path,
                                             std::uint64_t incarnation) {
  if (has_other_names(entry.path))  // of a process that was ended before it could look
    return Error{ErrorCode::in_use, entry.path + " in the pool is a snapshot's too", 0};
  auto file = storage_.open(entry.path, OpenMode::read_write);
  if (!file) return file.error();
  if (!(*file)->lock_exclusive())
    return Error{ErrorCode::in_use, entry.path + " in the pool is still being read", 0};
  SegmentPage page{};
  const auto came = read_all(**file, page, 0);
  if (!came) return came.error();
  const DecodedHeader old = decode_segment_header(page);
  if (!old.header) return Error{ErrorCode::corrupt, entry.path + " in the pool has no sound header", 0};
  const SegmentHeader header{next_epoch(old.header->epoch), offset_not_yet_known, incarnation, entry.bytes};
  Result<void> done = seeded(SeededBug::recycled_header_unsynced)
                          ? write_all(**file, encode_segment_header(header), 0)
                          : (*file)->write_synced(encode_segment_header(header), 0);
  (*file)->unlock();
  if (done) done = storage_.rename(entry.path, path);
  if (!done) return done.error();
  return PreparedSegment{std::move(*file), path, header, entry.mapping};
}

Result<PreparedSegment> SegmentPool::create(const std::string& path, std::uint64_t bytes,
                                            std::uint64_t incarnation, std::uint64_t free_bytes_floor) {
  if (free_bytes_floor != 0) {
    const auto free = storage_.free_bytes(path);
    if (!free) return free.error();
    if (*free < bytes || *free - bytes < free_bytes_floor) {
      return Error{ErrorCode::no_space,
                   "a new segment of " + std::to_string(bytes) + " bytes at " + path +
                       " would leave less than " + std::to_string(free_bytes_floor) +
                       " bytes on the disk (free now: " + std::to_string(*free) + ")",
                   0};
    }
  }
  auto file = storage_.open(path, OpenMode::create);
  if (!file) return file.error();
  auto epoch = static_cast<std::uint32_t>(storage_.random());
  if (epoch == 0) epoch = 1;
  const SegmentHeader header{epoch, offset_not_yet_known, incarnation, bytes};
  Result<void> done = (*file)->allocate(bytes);
  if (done) done = write_all(**file, encode_segment_header(header), 0);
  if (done) return PreparedSegment{std::move(*file), path, header, nullptr};
  static_cast<void>(storage_.unlink(path));
  return done.error();
}

}  // namespace lightq::log
