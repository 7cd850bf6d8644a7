/// The pool of segment files that no log needs any more. Recycling them is several times faster than
/// allocating new ones. Layer: log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "log/format/segment_format.hpp"
#include "log/storage/disk_quota.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// The bound that keeps a log from getting a new segment.
enum class SpaceBound {
  disk,   ///< the disk is full
  floor,  ///< the disk's free space would fall below its floor
  quota,  ///< all logs together have reached the quota
  share   ///< the rest of the quota is a reserve, and this log has more than its part
};

/// The conditions for a new segment.
struct SpaceWanted {
  std::uint64_t free_bytes_floor = 0;  ///< bytes that stay free on the disk, counting the new file
  std::uint64_t log_bytes = 0;         ///< bytes that the segment's log has already
  /// The quota's reserve is left for others if the log has more than its part of it.
  bool leaves_room = true;
  bool beyond_bounds = false;   ///< only a full disk refuses the file; larger ones can be removed then
  SpaceBound* bound = nullptr;  ///< set to the bound that was reached, if there was no space
  std::size_t batch_bytes = 0;  ///< if only the log's part of a reserve is left, the log gets a smaller file,
                                ///< with space for at least this many bytes
};

struct SegmentPoolOptions {
  std::string directory;  ///< on the file system of the logs; created when first needed
  std::size_t files_max = 64;
  std::uint64_t bytes_max = 1 * limits::GiB;
  /// For all segment files, including those in the pool; outlives the pool; null: none.
  DiskQuota* quota = nullptr;
  /// The lower half of the floor is a reserve for logs that have no more than their part of it.
  bool floor_has_parts = false;
  /// Called when a log begins to wait for space. Thread: any.
  std::function<void(SpaceBound)> log_waits = [](SpaceBound) {};
};

/// A file that is ready to become a log's next segment: allocated, with a header for that log. The header
/// does not contain the first offset yet.
struct PreparedSegment {
  std::shared_ptr<File> file;
  std::string path;
  SegmentHeader header;
  std::shared_ptr<WritableMapping> mapping;    ///< set if it was requested
  std::uint64_t new_from = ~std::uint64_t{0};  ///< nothing was ever written from this position on
};

/// A file that its log no longer needs.
struct FreeFile {
  std::string path;
  std::uint64_t bytes = 0;
  /// The mapping through which the file was written, if that can be used again.
  std::shared_ptr<WritableMapping> mapping = nullptr;
  /// The header, if this process has written it; nothing if another process has, or if it is not sound.
  std::optional<SegmentHeader> header = std::nullopt;
};

/// How the space of a new file is allocated.
enum class NewBytes {
  reserved,  ///< the disk's space is reserved, nothing is written
  /// Zeros are written, unless the file is large. The system then caches the file in large pieces, so that
  /// mapping it, now or after recycling, costs few page faults.
  written
};

/// The path of a recycled file until its segment has a name.
enum class RecycledFile {
  moves,  ///< the path that a new file would have
  stays   ///< its path in the pool, which gives it to no one else; saves a rename if the name is known soon
};

/// The pool of segment files. A broker has one for all its logs; an embedded queue has its own. Thread: any.
/// Lifetime: the storage must outlive the pool, the pool its logs.
///
/// Only the log that dropped a file uses it again. Other logs get new files, which may replace a file of the
/// pool; see docs/adr/0041-recycle-segment-files-only-within-their-log.md. A recycled file has an epoch that
/// no bytes in it have, nor can have after a power cut, so old bytes never validate.
///
/// - If this process wrote the last header, the next epoch is the last one + 1. The new header need not be
///   synced before the file is renamed into the log's directory. The header that a power cut may leave names
///   an offset before everything in the log, see docs/log_format.md. At each multiple of 2^16 the header is
///   synced.
/// - If the header was found, later headers may never have reached the disk, although bytes under their
///   epochs have. The next epoch is the next multiple of 2^16, and the header is synced.
class SegmentPool {
 public:
  SegmentPool(SegmentPoolOptions options, Storage& storage);
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  /// Returns how many files the pool keeps at most.
  [[nodiscard]] std::size_t files_max() const { return options_.files_max; }
  /// Adds the files to the pool, in order. A full pool first removes a smaller file, or a file that its log
  /// has not requested for long. If there is still no space, the new file is removed. A file with another
  /// name is also removed: a snapshot has it too, so that it is never written again. Each directory that the
  /// files leave is synced once. A missing file is no error. Adds the number of processed files to `done`.
  /// Errors: io_error.
  Result<void> retire(std::span<FreeFile> files, std::size_t& done);
  Result<void> retire(FreeFile file) {
    std::size_t done = 0;
    return retire({&file, 1}, done);
  }
  /// Removes a file of `bytes` that a reader still uses, so that it is never written again. Errors: io_error.
  Result<void> remove(const std::string& path, std::uint64_t bytes);

  /// Makes a file of exactly `bytes` for the log `incarnation`, from the pool or new. PreparedSegment::path
  /// tells where it is. `key_id`, `batch_mask`: see SegmentHeader. A new file has to respect the disk's floor
  /// and the quota. The quota's last eighth is a reserve for small logs. Each open log has an equal part of
  /// it, for which a smaller file may be made. Errors: no_space, io_error; nothing stays at `path` then.
  Result<PreparedSegment> prepare(const std::string& path, std::uint64_t bytes, std::uint64_t incarnation,
                                  const SpaceWanted& wanted, NewBytes new_bytes = NewBytes::reserved,
                                  std::uint64_t key_id = 0, RecycledFile recycled = RecycledFile::moves,
                                  std::uint32_t batch_mask = 0);
  /// Registers an open log: the reserve is divided by the number of open logs.
  class Member {
   public:
    explicit Member(SegmentPool& pool) : pool_(pool) { ++pool_.logs_; }
    ~Member() { --pool_.logs_; }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    SegmentPool& pool_;
  };
  /// Reports that a log had no space, and waits from now on.
  void note_wait(SpaceBound bound) const { options_.log_waits(bound); }

  /// Drops the mappings of the pool's files, to make space under the cap.
  void unmap();

  /// Removes the pool's files, because the disk is full and something smaller needs space.
  void free_disk();

  /// Returns the number of files in the pool.
  [[nodiscard]] std::size_t files();

 private:
  /// A file in the pool; see FreeFile.
  struct Entry {
    std::string path;
    std::uint64_t bytes = 0;
    std::shared_ptr<WritableMapping> mapping;
    std::optional<SegmentHeader> header;
    std::uint64_t log = 0;      ///< the incarnation of the log that dropped it; 0: unknown
    std::uint64_t retired = 0;  ///< the value of retired_ when the file was added
  };
  /// The log that a file is for, its key, and where it wants the file.
  struct Owner {
    std::uint64_t incarnation = 0;
    std::uint64_t key_id = 0;
    RecycledFile recycled = RecycledFile::moves;
    std::uint32_t batch_mask = 0;
  };
  void load_once();
  void give_back(std::uint64_t bytes);
  Result<PreparedSegment> prepare_exactly(const std::string& path, std::uint64_t bytes, const Owner& owner,
                                          const SpaceWanted& wanted, NewBytes new_bytes);
  [[nodiscard]] bool is_its_part(const SpaceWanted& wanted, std::uint64_t bytes, std::uint64_t kept) const;
  [[nodiscard]] bool has_part(const SpaceWanted& wanted, std::uint64_t bytes) const;
  [[nodiscard]] std::optional<Error> no_share(const std::string& path, std::uint64_t bytes,
                                              const SpaceWanted& wanted);
  [[nodiscard]] std::optional<Error> no_room(const std::string& path, std::uint64_t bytes,
                                             const SpaceWanted& wanted);
  std::optional<Entry> take_for_room(std::uint64_t bytes, std::uint64_t log);
  std::optional<Entry> take_any();
  bool take_of_quota(std::uint64_t bytes);
  bool has_other_names(const std::string& path);
  /// Takes a file that this log dropped: one with a mapping if there is any, else the newest, which is most
  /// likely cached.
  std::optional<Entry> take_own(std::uint64_t bytes, std::uint64_t log);
  std::optional<Entry> take_oldest(std::uint64_t bytes);
  std::uint64_t log_of(const FreeFile& free);
  [[nodiscard]] bool is_full(std::uint64_t bytes) const;
  std::optional<Entry> take_at(std::size_t index);
  std::optional<std::string> reserve(std::uint64_t bytes);
  void give_up_reserved(std::uint64_t bytes);
  /// A file that was moved into the pool's directory and is not available yet.
  struct Moved {
    std::string old_directory;
    Entry entry;
  };
  Result<void> move_in(FreeFile& file, std::vector<Moved>& moved);
  Result<void> sync_old_names(const std::vector<Moved>& moved);
  Result<void> admit(std::vector<Moved> moved);
  struct NextHeader {
    SegmentHeader header;
    bool sync = true;
  };
  Result<NextHeader> next_header(const Entry& entry, File& file, const Owner& owner);
  static Result<void> begin_file(File& file, const SegmentHeader& header, NewBytes new_bytes);
  Result<PreparedSegment> recycle(const Entry& entry, const std::string& path, const Owner& owner);
  Result<PreparedSegment> create(const std::string& path, std::uint64_t bytes, const Owner& owner,
                                 const SpaceWanted& wanted, NewBytes new_bytes);
  Result<PreparedSegment> replace(Entry entry, const std::string& path, const Owner& owner,
                                  NewBytes new_bytes);
  Result<PreparedSegment> make_file(const std::string& path, std::uint64_t bytes, const Owner& owner,
                                    NewBytes new_bytes);

  const SegmentPoolOptions options_;
  Storage& storage_;
  std::atomic<std::uint64_t> logs_{0};
  std::mutex mutex_;  // guards all below; never locked during a rename, a write or a sync
  bool loaded_ = false;
  std::vector<Entry> entries_;
  std::size_t mapped_ = 0;    // entries with a mapping
  std::size_t reserved_ = 0;  // slots for files that are being moved in
  std::uint64_t bytes_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t retired_ = 0;  // files offered to the pool, including those for which it had no space
};

}  // namespace lightq::log
