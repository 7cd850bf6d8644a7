/// The pool of segment files that wait to be recycled. Layer: log.
#include "log/segment/segment_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace lightq::log {

namespace {

constexpr std::string_view suffix = ".free";

// Files that arrive at a full pool before another log's file has to go.
constexpr std::uint64_t left_max = 128;
// Size for a log that cannot get even the usual first size.
constexpr std::uint64_t small_file_bytes = 64 * limits::KiB;
constexpr std::uint64_t piece_bytes = 128 * limits::KiB;  // size of each write that fills a new file
constexpr std::uint64_t written_max = 2 * limits::MiB;    // larger files are mapped with large pages

std::uint32_t next_epoch(std::uint32_t epoch) {
  return epoch + 1 == 0 ? 1 : epoch + 1;
}

std::string segment_text(const std::string& path, std::uint64_t bytes) {
  return "a new segment of " + std::to_string(bytes) + " bytes at " + path;
}

/// Returns the incarnation in the file's header; 0 if it has no sound header.
std::uint64_t log_in_header(File& file) {
  SegmentPage page{};
  const auto came = read_all(file, page, 0);
  const auto header = came ? decode_segment_header(page).header : std::nullopt;
  return header ? header->incarnation : 0;
}

// Returns an epoch past all those that may have been used since the header with this epoch reached the disk.
std::uint32_t epoch_beyond(std::uint32_t epoch) {
  return next_epoch(epoch | (epochs_unsynced_max - 1));
}

}  // namespace

SegmentPool::SegmentPool(SegmentPoolOptions options, Storage& storage)
    : options_(std::move(options)), storage_(storage) {}

// Reads the pool's directory at first use; its files are named `<number>.free`. A broker without durable
// topics never does. Requires: mutex_ is locked.
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
    entries_.push_back({path, *size, nullptr, std::nullopt, log_in_header(**file), 0});
    bytes_ += *size;
  }
}

std::size_t SegmentPool::files() {
  const std::lock_guard lock(mutex_);
  load_once();
  return entries_.size();
}

// Returns true if the pool has no space for one more file of `bytes`. Requires: mutex_ is locked.
bool SegmentPool::is_full(std::uint64_t bytes) const {
  return entries_.size() + reserved_ >= options_.files_max || bytes_ + bytes > options_.bytes_max;
}

// Requires: mutex_ is locked.
std::optional<SegmentPool::Entry> SegmentPool::take_at(std::size_t index) {
  Entry entry = std::move(entries_[index]);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  bytes_ -= entry.bytes;
  if (entry.mapping != nullptr) --mapped_;
  return entry;
}

std::optional<SegmentPool::Entry> SegmentPool::take_own(std::uint64_t bytes, std::uint64_t log) {
  const std::lock_guard lock(mutex_);
  load_once();
  std::optional<std::size_t> found;
  for (std::size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].bytes != bytes || entries_[i].log != log) continue;
    if (entries_[i].mapping != nullptr || mapped_ == 0) return take_at(i);
    if (!found) found = i;
  }
  return found ? take_at(*found) : std::nullopt;
}

std::optional<SegmentPool::Entry> SegmentPool::take_oldest(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, bytes, &Entry::bytes);
  if (found == entries_.end()) return std::nullopt;
  return take_at(static_cast<std::size_t>(found - entries_.begin()));
}

// Reserves a slot for one more file of `bytes` and returns its path; nothing if the pool is full.
std::optional<std::string> SegmentPool::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  load_once();
  if (is_full(bytes)) return std::nullopt;
  bytes_ += bytes;
  ++reserved_;
  return options_.directory + "/" + std::to_string(next_number_++) + std::string(suffix);
}

void SegmentPool::give_up_reserved(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  --reserved_;
}

// Returns true if a snapshot has the file too. Asks after the file was moved into the pool, because no
// further link can be made under the old name then.
bool SegmentPool::has_other_names(const std::string& path) {
  const auto links = storage_.link_count(path);
  return !links || *links > 1;
}

// If the pool is full, takes out a file that can be removed for the new one. Prefers a smaller file: only a
// log's first files are small, and a grown log requests none of that size. Otherwise takes another log's file
// of the same size that its log has not requested for long.
std::optional<SegmentPool::Entry> SegmentPool::take_for_room(std::uint64_t bytes, std::uint64_t log) {
  const std::lock_guard lock(mutex_);
  load_once();
  ++retired_;
  if (!is_full(bytes)) return std::nullopt;
  auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.bytes < bytes; });
  if (found == entries_.end()) {
    found = std::ranges::find_if(entries_, [&](const Entry& entry) {
      return entry.bytes == bytes && entry.log != log && entry.retired + left_max <= retired_;
    });
  }
  if (found == entries_.end()) return std::nullopt;
  return take_at(static_cast<std::size_t>(found - entries_.begin()));
}

Result<void> SegmentPool::retire(std::span<FreeFile> files, std::size_t& done) {
  std::vector<Moved> moved;
  Result<void> result;
  for (FreeFile& file : files) {
    result = move_in(file, moved);
    if (!result) break;
    ++done;
  }
  if (auto admitted = admit(std::move(moved)); !admitted && result) return admitted;
  return result;
}

// Moves the file to its name in the pool, where it is not available yet; or removes it.
Result<void> SegmentPool::move_in(FreeFile& file, std::vector<Moved>& moved) {
  const std::uint64_t log = log_of(file);
  if (const auto given_up = take_for_room(file.bytes, log))
    static_cast<void>(remove(given_up->path, given_up->bytes));
  const auto place = reserve(file.bytes);
  if (!place) return remove(file.path, file.bytes);
  Result<void> done = moved.empty() ? storage_.make_directory(options_.directory) : Result<void>{};
  if (done) done = storage_.rename(file.path, *place);
  if (!done) {
    give_up_reserved(file.bytes);
    return is_missing(done.error()) ? Result<void>{} : remove(file.path, file.bytes);
  }
  moved.push_back({parent_of(file.path), {*place, file.bytes, std::move(file.mapping), file.header, log, 0}});
  return {};
}

// Makes the removal of the old names durable before the files are recycled. Otherwise a power cut could
// restore the old name of a file that another segment uses.
Result<void> SegmentPool::sync_old_names(const std::vector<Moved>& moved) {
  std::vector<std::string> synced;
  for (const Moved& each : moved) {
    if (std::find(synced.begin(), synced.end(), each.old_directory) != synced.end()) continue;
    if (auto done = storage_.sync_directory(each.old_directory); !done) return done;
    synced.push_back(each.old_directory);
  }
  return {};
}

Result<void> SegmentPool::admit(std::vector<Moved> moved) {
  const bool synced = sync_old_names(moved).ok();
  Result<void> result;
  for (Moved& each : moved) {
    Entry& entry = each.entry;
    if (synced && !has_other_names(entry.path)) {
      const std::lock_guard lock(mutex_);
      entry.retired = retired_;
      if (entry.mapping != nullptr) ++mapped_;
      --reserved_;
      entries_.push_back(std::move(entry));
      continue;
    }
    give_up_reserved(entry.bytes);
    if (auto removed = remove(entry.path, entry.bytes); !removed) result = removed;
  }
  return result;
}

std::uint64_t SegmentPool::log_of(const FreeFile& free) {
  if (free.header) return free.header->incarnation;
  const auto file = storage_.open(free.path, OpenMode::read_only);
  return file ? log_in_header(**file) : 0;
}

Result<void> SegmentPool::remove(const std::string& path, std::uint64_t bytes) {
  const Result<void> removed = storage_.unlink(path);
  if (removed) give_back(bytes);
  if (!removed && !is_missing(removed.error())) return removed;
  return {};
}

void SegmentPool::give_back(std::uint64_t bytes) {
  if (options_.quota != nullptr) options_.quota->give_back(bytes);
}

// Unmaps after unlocking, because that takes a while.
void SegmentPool::unmap() {
  std::vector<std::shared_ptr<WritableMapping>> given_up;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) given_up.push_back(std::move(entry.mapping));
  mapped_ = 0;
}

Result<PreparedSegment> SegmentPool::prepare(const std::string& path, std::uint64_t bytes,
                                             std::uint64_t incarnation, const SpaceWanted& wanted,
                                             NewBytes new_bytes, std::uint64_t key_id, RecycledFile recycled,
                                             std::uint32_t batch_mask) {
  const Owner owner{incarnation, key_id, recycled, batch_mask};
  auto made = prepare_exactly(path, bytes, owner, wanted, new_bytes);
  if (made || made.error().code != ErrorCode::no_space) return made;
  // Returns the error if the system limits the size of files. Otherwise the log would get small files for
  // ever.
  if (made.error().system_error == EFBIG) return made;
  const std::uint64_t smaller =
      std::max(small_file_bytes, round_up_to_page(segment_header_bytes + wanted.batch_bytes));
  if (bytes <= smaller || !has_part(wanted, smaller)) return made;
  return prepare_exactly(path, smaller, owner, wanted, new_bytes);
}

Result<PreparedSegment> SegmentPool::prepare_exactly(const std::string& path, std::uint64_t bytes,
                                                     const Owner& owner, const SpaceWanted& wanted,
                                                     NewBytes new_bytes) {
  if (auto refused = no_share(path, bytes, wanted)) return *refused;
  while (const auto entry = take_own(bytes, owner.incarnation)) {
    auto recycled = recycle(*entry, path, owner);
    if (recycled) return recycled;
    // Otherwise the same bad file would be tried for ever.
    static_cast<void>(remove(entry->path, entry->bytes));
  }
  auto made = create(path, bytes, owner, wanted, new_bytes);
  while (!made && made.error().code == ErrorCode::no_space) {
    auto replaced = take_oldest(bytes);
    if (!replaced) break;
    made = replace(std::move(*replaced), path, owner, new_bytes);
  }
  while (!made && made.error().code == ErrorCode::no_space) {
    const auto given_up = take_any();  // a file of another size: worth less than the one that a log needs now
    if (!given_up) break;
    static_cast<void>(remove(given_up->path, given_up->bytes));
    made = create(path, bytes, owner, wanted, new_bytes);
  }
  return made;
}

// Returns the header of the file for its next use by this log.
Result<SegmentPool::NextHeader> SegmentPool::next_header(const Entry& entry, File& file, const Owner& owner) {
  NextHeader next{
      {0, offset_not_yet_known, owner.incarnation, entry.bytes, {}, owner.key_id, owner.batch_mask}, false};
  if (entry.header) {
    next.header.epoch = next_epoch(entry.header->epoch);
    next.sync = (entry.header->epoch + 1) % epochs_unsynced_max == 0;
    return next;
  }
  if (has_other_names(entry.path))  // its process ended before it could check
    return Error{ErrorCode::in_use, entry.path + " in the pool belongs to a snapshot too", 0};
  SegmentPage page{};
  const auto came = read_all(file, page, 0);
  if (!came) return came.error();
  const DecodedHeader found = decode_segment_header(page);
  if (!found.header) return Error{ErrorCode::corrupt, entry.path + " in the pool has no sound header", 0};
  next.header.epoch = epoch_beyond(found.header->epoch);
  next.sync = true;
  return next;
}

Result<PreparedSegment> SegmentPool::recycle(const Entry& entry, const std::string& path,
                                             const Owner& owner) {
  auto file = storage_.open(entry.path, OpenMode::read_write);
  if (!file) return file.error();
  if (!(*file)->lock_exclusive())
    return Error{ErrorCode::in_use, entry.path + " in the pool is still being read", 0};
  const auto next = next_header(entry, **file, owner);
  if (!next) return next.error();
  const SegmentPage page = encode_segment_header(next->header);
  Result<void> done = next->sync ? (*file)->write_synced(page, 0) : write_all(**file, page, 0);
  (*file)->unlock();
  const bool moves = owner.recycled == RecycledFile::moves;
  if (done && moves) done = storage_.rename(entry.path, path);
  if (!done) return done.error();
  return PreparedSegment{std::move(*file), moves ? path : entry.path, next->header, entry.mapping};
}

// Writes in pieces, because the system caches as one piece the bytes of one write call. Large pieces make
// reading through a mapping cost few faults. But each write to a page makes the system check all pages of its
// piece. 128 KiB is the best of 16 to 256 KiB for both (docs/benchmarks.md).
Result<void> SegmentPool::begin_file(File& file, const SegmentHeader& header, NewBytes new_bytes) {
  if (auto reserved = file.allocate(header.file_bytes); !reserved) return reserved;
  const SegmentPage page = encode_segment_header(header);
  if (new_bytes == NewBytes::reserved || written_max <= header.file_bytes) return write_all(file, page, 0);
  std::vector<std::byte> bytes(header.file_bytes);
  std::copy(page.begin(), page.end(), bytes.begin());
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    const std::size_t piece = std::min<std::size_t>(piece_bytes, bytes.size() - at);
    if (auto written = write_all(file, ByteView(bytes).subspan(at, piece), at); !written) return written;
  }
  return {};
}

// Replaces another log's file by a new one of that size, which needs no additional space on the disk or in
// the quota.
Result<PreparedSegment> SegmentPool::replace(Entry entry, const std::string& path, const Owner& owner,
                                             NewBytes new_bytes) {
  entry.mapping.reset();  // the mapping would keep the disk's space allocated
  if (auto removed = storage_.unlink(entry.path); !removed && !is_missing(removed.error()))
    return removed.error();
  return make_file(path, entry.bytes, owner, new_bytes);
}

std::optional<SegmentPool::Entry> SegmentPool::take_any() {
  const std::lock_guard lock(mutex_);
  return entries_.empty() ? std::nullopt : take_at(0);
}

void SegmentPool::free_disk() {
  for (std::size_t left = files(); left > 0; --left) {
    const auto given_up = take_any();
    if (!given_up || !remove(given_up->path, given_up->bytes)) return;
  }
}

// Takes `bytes` of the quota. Removes files from the pool if necessary: they are worth less than a file that
// a log needs now.
bool SegmentPool::take_of_quota(std::uint64_t bytes) {
  if (options_.quota == nullptr) return true;
  while (!options_.quota->take(bytes)) {
    const auto given_up = take_any();
    if (!given_up) return false;
    static_cast<void>(remove(given_up->path, given_up->bytes));
  }
  return true;
}

// Returns true if the log, with the new file, stays within its part of `kept` bytes: an equal share for each
// open log.
bool SegmentPool::is_its_part(const SpaceWanted& wanted, std::uint64_t bytes, std::uint64_t kept) const {
  const std::uint64_t part = kept / std::max<std::uint64_t>(1, logs_);
  return bytes <= part && wanted.log_bytes <= part - bytes;
}

bool SegmentPool::has_part(const SpaceWanted& wanted, std::uint64_t bytes) const {
  return (options_.quota != nullptr && is_its_part(wanted, bytes, options_.quota->last_bytes())) ||
         (options_.floor_has_parts && is_its_part(wanted, bytes, wanted.free_bytes_floor / 2));
}

// Returns an error if the file would need the quota's reserve and the log has more than its part of it. Files
// in the pool count as free, because other logs could have their space.
std::optional<Error> SegmentPool::no_share(const std::string& path, std::uint64_t bytes,
                                           const SpaceWanted& wanted) {
  if (options_.quota == nullptr || !wanted.leaves_room || wanted.beyond_bounds) return std::nullopt;
  if (is_its_part(wanted, bytes, options_.quota->last_bytes())) return std::nullopt;
  std::uint64_t unused = 0;
  {
    const std::lock_guard lock(mutex_);
    load_once();
    unused = bytes_;
  }
  if (options_.quota->leaves_last(bytes, unused)) return std::nullopt;
  if (wanted.bound != nullptr) *wanted.bound = SpaceBound::share;
  return Error{ErrorCode::no_space,
               segment_text(path, bytes) + " is refused, because its log has " +
                   std::to_string(wanted.log_bytes) + " bytes, and the last eighth of " +
                   std::to_string(options_.quota->bytes_max()) + " is reserved for logs that have little",
               0};
}

// Returns an error if the disk's floor or the quota does not permit the file. Otherwise counts the file in
// the quota.
std::optional<Error> SegmentPool::no_room(const std::string& path, std::uint64_t bytes,
                                          const SpaceWanted& wanted) {
  if (wanted.beyond_bounds) {
    if (!take_of_quota(bytes)) options_.quota->take_anyway(bytes);
    return std::nullopt;
  }
  const std::string segment = segment_text(path, bytes);
  const std::uint64_t half = wanted.free_bytes_floor / 2;
  const bool below = options_.floor_has_parts && is_its_part(wanted, bytes, half);
  const std::uint64_t floor = below ? half : wanted.free_bytes_floor;
  const auto reached = [&](SpaceBound bound) {
    if (wanted.bound != nullptr) *wanted.bound = bound;
  };
  if (floor != 0) {
    const auto free = storage_.free_bytes(path);
    if (!free) return free.error();
    if (*free < bytes || *free - bytes < floor) {
      reached(SpaceBound::floor);
      return Error{ErrorCode::no_space,
                   segment + " would leave less than " + std::to_string(floor) +
                       " bytes on the disk (free now: " + std::to_string(*free) + ")",
                   0};
    }
  }
  if (take_of_quota(bytes)) return std::nullopt;
  reached(SpaceBound::quota);
  return Error{ErrorCode::no_space,
               segment + " would make all segments larger than " +
                   std::to_string(options_.quota->bytes_max()) + " bytes, the maximum for all of them",
               0};
}

Result<PreparedSegment> SegmentPool::create(const std::string& path, std::uint64_t bytes, const Owner& owner,
                                            const SpaceWanted& wanted, NewBytes new_bytes) {
  if (wanted.bound != nullptr) *wanted.bound = SpaceBound::disk;
  if (auto full = no_room(path, bytes, wanted)) return *full;
  return make_file(path, bytes, owner, new_bytes);
}

// Creates the file. Requires: there is space for it, and the quota counts it.
Result<PreparedSegment> SegmentPool::make_file(const std::string& path, std::uint64_t bytes,
                                               const Owner& owner, NewBytes new_bytes) {
  auto file = storage_.open(path, OpenMode::create);
  if (!file) {
    give_back(bytes);
    return file.error();
  }
  auto epoch = static_cast<std::uint32_t>(storage_.random());
  if (epoch == 0) epoch = 1;
  const SegmentHeader header{epoch, offset_not_yet_known, owner.incarnation, bytes,
                             {},    owner.key_id,         owner.batch_mask};
  const Result<void> done = begin_file(**file, header, new_bytes);
  if (done) return PreparedSegment{std::move(*file), path, header, nullptr, segment_header_bytes};
  static_cast<void>(remove(path, bytes));
  return done.error();
}

}  // namespace lightq::log
