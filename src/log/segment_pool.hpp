/// Segment files that no log needs any more, kept to be written again: that is several times faster than
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

#include "log/disk_quota.hpp"
#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// What keeps a log from a new segment.
enum class SpaceBound {
  disk,   ///< it is full
  floor,  ///< it would have less left than it is to have
  quota,  ///< logs have as much of it as they may, all together
  share   ///< this log has as much of that as it may
};

/// What a new segment is held to.
struct SpaceWanted {
  std::uint64_t free_bytes_floor = 0;  ///< of the disk, with a new file
  std::uint64_t log_bytes = 0;         ///< what its log has already
  bool leaves_room = true;             ///< of the quota, for others, once the log has more than its part
  bool beyond_bounds = false;          ///< only the disk bounds it: it lets files go that are larger
  SpaceBound* bound = nullptr;         ///< told what was reached, where there was no space
  std::size_t batch_bytes =
      0;  ///< where only its part is left, a smaller file that has room for so much does
};

struct SegmentPoolOptions {
  std::string directory;  ///< on the same file system as the logs; made when first needed
  std::size_t files_max = 64;
  std::uint64_t bytes_max = 1 * limits::GiB;
  DiskQuota* quota = nullptr;  ///< of all segment files, those in the pool too; outlives the pool; null: none
  /// Of the floor that logs are held to, half is for those that have no more than their part of that.
  bool floor_has_parts = false;
  /// A log begins to wait for space. Any thread.
  std::function<void(SpaceBound)> log_waits = [](SpaceBound) {};
};

/// A file that is ready to become a log's next segment: allocated, and with a header that belongs to that log
/// but does not know its first offset yet.
struct PreparedSegment {
  std::shared_ptr<File> file;
  std::string path;
  SegmentHeader header;
  std::shared_ptr<WritableMapping> mapping;    ///< where it was asked for
  std::uint64_t new_from = ~std::uint64_t{0};  ///< nothing has ever been written from here on
};

/// A file that its log is done with.
struct FreeFile {
  std::string path;
  std::uint64_t bytes = 0;
  /// That it was written through, if that is to be used again.
  std::shared_ptr<WritableMapping> mapping = nullptr;
  /// That this process has written; nothing if another one has, or if it is not sound.
  std::optional<SegmentHeader> header = std::nullopt;
};

/// What becomes of the bytes of a new file.
enum class NewBytes {
  reserved,  ///< only the disk's space
  /// Zeros are written, if the file is not large: the system then has them in memory in large pieces, and a
  /// mapping of the file, now and whenever the file is used again, costs few faults.
  written
};

/// Where a file from the pool lies until its segment has a name.
enum class RecycledFile {
  moves,  ///< to the path that a new file would have
  stays   ///< in the pool, from which nobody takes it any more: saves a rename where the name is known by now
};

/// One per broker, shared by all its logs. A file is used again by the log that it was of, and by no other:
/// in place of another log's file a new one is made, see docs/adr/0041. A file
/// that is used again carries an epoch that no bytes in it have, nor can have after a power cut: old bytes
/// never validate. Any thread; the storage must outlive the pool, the pool its logs.
///
/// The next epoch is the one after the last. Where this process knows that last one, for it has written the
/// header, the new header need not be on disk before the log's directory knows the file: the header that a
/// power cut may leave then names an offset before everything that the log holds, see docs/log_format.md.
/// Such epochs end at a multiple of 2^16; that one's header is synced. A header that was found may be one of
/// several that never came to the disk, and bytes under any of them may have: the next epoch is the multiple
/// of 2^16 behind it, and that header is synced, too.
class SegmentPool {
 public:
  SegmentPool(SegmentPoolOptions options, Storage& storage);
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  /// How many files it keeps.
  [[nodiscard]] std::size_t files_max() const { return options_.files_max; }
  /// Takes over the files, in order: each goes into the pool, or is removed if the pool is full or the file
  /// has another name too (a snapshot's: it is never written again). A full pool gives up a smaller file for
  /// it. Their directories are synced once for all. A file that is not there is no error. Adds to `done` how
  /// many it has come past. Errors: io_error.
  Result<void> retire(std::span<FreeFile> files, std::size_t& done);
  Result<void> retire(FreeFile file) {
    std::size_t done = 0;
    return retire({&file, 1}, done);
  }
  /// As retire, for a file of `bytes` that somebody still reads: never written again.
  Result<void> remove(const std::string& path, std::uint64_t bytes);

  /// Makes a file of exactly `bytes` at `path` for the log `incarnation`: from the pool, or a new one unless
  /// that left too little on the disk, or went beyond the quota. The quota's last eighth is for logs that
  /// have no more than their part of it then, which all logs have alike; what they get there may be smaller.
  /// Errors: no_space, io_error; nothing stays at `path` then. `key_id`, `batch_mask`: see SegmentHeader.
  /// Where it lies is told.
  Result<PreparedSegment> prepare(const std::string& path, std::uint64_t bytes, std::uint64_t incarnation,
                                  const SpaceWanted& wanted, NewBytes new_bytes = NewBytes::reserved,
                                  std::uint64_t key_id = 0, RecycledFile recycled = RecycledFile::moves,
                                  std::uint32_t batch_mask = 0);
  /// A log that is open: what is kept for those that have little is divided among all.
  class Member {
   public:
    explicit Member(SegmentPool& pool) : pool_(pool) { ++pool_.logs_; }
    ~Member() { --pool_.logs_; }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    SegmentPool& pool_;
  };
  /// A log has asked, and waits from now on.
  void note_wait(SpaceBound bound) const { options_.log_waits(bound); }

  /// Gives up the mappings that files came with: their room is needed.
  void unmap();

  /// Removes the files that wait to be written again: the disk is full, and something smaller needs room.
  void free_disk();

  /// Files in the pool.
  [[nodiscard]] std::size_t files();

 private:
  /// See FreeFile.
  struct Entry {
    std::string path;
    std::uint64_t bytes = 0;
    std::shared_ptr<WritableMapping> mapping;
    std::optional<SegmentHeader> header;
    std::uint64_t log = 0;      ///< the incarnation of the log that it is of; 0: not known
    std::uint64_t retired = 0;  ///< how many files had come to the pool
  };
  /// The log that a file is for, what it encrypts with, and where it wants the file.
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
  /// A file of this log: one with a mapping, if there is any; else the one that came last, which is likeliest
  /// to be in memory.
  std::optional<Entry> take_own(std::uint64_t bytes, std::uint64_t log);
  std::optional<Entry> take_oldest(std::uint64_t bytes);
  std::uint64_t log_of(const FreeFile& free);
  [[nodiscard]] bool is_full(std::uint64_t bytes) const;
  std::optional<Entry> take_at(std::size_t index);
  std::optional<std::string> reserve(std::uint64_t bytes);
  void give_up_reserved(std::uint64_t bytes);
  /// A file that has moved in.
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
  std::mutex mutex_;  // guards what follows; never held during a rename, a write or a sync
  bool loaded_ = false;
  std::vector<Entry> entries_;
  std::size_t mapped_ = 0;    // of them have a mapping
  std::size_t reserved_ = 0;  // places for files that are being moved in
  std::uint64_t bytes_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t retired_ = 0;  // files that have come, also those that found no place
};

}  // namespace lightq::log
