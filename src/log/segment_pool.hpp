/// Segment files that no log needs any more, kept to be written again: that is several times faster than
/// allocating new ones. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

struct SegmentPoolOptions {
  std::string directory;  ///< on the same file system as the logs; made when first needed
  std::size_t files_max = 64;
  std::uint64_t bytes_max = 1 * limits::GiB;
};

/// A file that is ready to become a log's next segment: allocated, and with a header that belongs to that log
/// but does not know its first offset yet.
struct PreparedSegment {
  std::unique_ptr<File> file;
  std::string path;
  SegmentHeader header;
  std::shared_ptr<WritableMapping> mapping;  ///< where it was asked for
};

/// One per broker, shared by all its logs. A file that comes from the pool carries the epoch after its last
/// one, and its new header is on disk before its log's directory knows it: old bytes never validate, not even
/// after a power cut. Any thread; the storage must outlive the pool, the pool its logs.
class SegmentPool {
 public:
  SegmentPool(SegmentPoolOptions options, Storage& storage);
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  /// Takes over the file at `path`, `bytes` long: it goes into the pool, or is removed if the pool is full or
  /// the file has another name too (a snapshot's: it is never written again). A file that is not there is no
  /// error. Errors: io_error.
  /// With it goes the mapping it was written through, if that is to be used again. A full pool gives up a
  /// smaller file for it.
  Result<void> retire(const std::string& path, std::uint64_t bytes,
                      std::shared_ptr<WritableMapping> mapping = nullptr);
  /// As retire, for a file that somebody still reads: never written again.
  Result<void> remove(const std::string& path);

  /// Makes a file of exactly `bytes` at `path` for the log `incarnation`: from the pool, or a new one unless
  /// that left less than `free_bytes_floor` on the disk. Errors: no_space, io_error; nothing stays at `path`
  /// then.
  Result<PreparedSegment> prepare(const std::string& path, std::uint64_t bytes, std::uint64_t incarnation,
                                  std::uint64_t free_bytes_floor);

  /// Files in the pool.
  [[nodiscard]] std::size_t files();

 private:
  struct Entry {
    std::string path;
    std::uint64_t bytes = 0;
    std::shared_ptr<WritableMapping> mapping;
  };
  void load_once();
  std::optional<Entry> take_smaller(std::uint64_t bytes);
  bool has_other_names(const std::string& path);
  std::optional<Entry> take(std::uint64_t bytes);
  std::optional<std::string> reserve(std::uint64_t bytes);
  Result<PreparedSegment> recycle(const Entry& entry, const std::string& path, std::uint64_t incarnation);
  Result<PreparedSegment> create(const std::string& path, std::uint64_t bytes, std::uint64_t incarnation,
                                 std::uint64_t free_bytes_floor);

  const SegmentPoolOptions options_;
  Storage& storage_;
  std::mutex mutex_;  // guards what follows; never held during a rename, a write or a sync
  bool loaded_ = false;
  std::vector<Entry> entries_;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_number_ = 0;
};

}  // namespace lightq::log
