/// Segments as readers on other threads see them, and the views through which they read. Layer: log.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "log/format/segment_format.hpp"
#include "log/format/segment_index.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

class SegmentNode;

/// A mapped segment. While it exists, its bytes are valid and its file is not recycled. Its data is
/// immutable. Thread: any.
class SegmentView {
 public:
  SegmentView(std::shared_ptr<SegmentNode> node, std::shared_ptr<const void> mapping, const std::byte* data,
              std::size_t bytes, std::shared_ptr<std::atomic<std::uint64_t>> counted,
              const Mapping* of_its_own = nullptr);
  SegmentView(const SegmentView&) = delete;
  SegmentView& operator=(const SegmentView&) = delete;
  ~SegmentView();
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  /// Asks the system to make the pages of [begin, end) present, unless that was done before. Does nothing for
  /// the writer's mapping, which has its pages present.
  void populate(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::shared_ptr<SegmentNode> node_;
  std::shared_ptr<const void> mapping_;
  const Mapping* of_its_own_;  // points into mapping_; null: the mapping is the writer's
  // One range that is present, because readers mostly follow each other. Only a hint: a race costs one more
  // call.
  mutable std::atomic<std::uint64_t> ready_begin_ = 0;
  mutable std::atomic<std::uint64_t> ready_end_ = 0;
  const std::byte* data_;
  std::size_t bytes_;
  std::shared_ptr<std::atomic<std::uint64_t>> counted_;  // null: the mapping is the writer's own
};

/// One segment in the chain of a log's segments. Immutable, except for its end, which only grows, and its
/// successor, which is set once. Thread: one writer; any number of readers, without locks.
class SegmentNode {
 public:
  /// `trusted_from`: this process wrote or checked the batches at or past this position.
  SegmentNode(std::string path, const SegmentHeader& header, std::uint64_t usable_bytes,
              std::uint64_t trusted_from)
      : path_(std::move(path)),
        header_(header),
        usable_bytes_(usable_bytes),
        trusted_from_(trusted_from),
        end_position_(segment_header_bytes),
        end_offset_(header.first_offset.value) {}
  SegmentNode(const SegmentNode&) = delete;
  SegmentNode& operator=(const SegmentNode&) = delete;
  ~SegmentNode();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] Offset first_offset() const { return header_.first_offset; }
  [[nodiscard]] std::uint64_t usable_bytes() const { return usable_bytes_; }
  [[nodiscard]] std::uint64_t trusted_from() const { return trusted_from_; }
  /// Returns the position up to which some reader has checked all batches. Only grows.
  [[nodiscard]] std::uint64_t checked_up_to() const { return checked_up_to_.load(std::memory_order_acquire); }
  /// Notes that the batches in [begin, end) are sound.
  void note_checked(std::uint64_t begin, std::uint64_t end) {
    checked_up_to_.compare_exchange_strong(begin, end, std::memory_order_release, std::memory_order_relaxed);
  }

  /// Returns the position after the last complete batch.
  [[nodiscard]] std::uint64_t end_position() const { return end_position_.load(std::memory_order_acquire); }
  /// Returns the offset after the last complete batch. May be one batch behind end_position.
  [[nodiscard]] Offset end_offset() const { return {end_offset_.load(std::memory_order_acquire)}; }
  /// Returns the next segment, or null if there is none yet. Once there is one, the end of this segment is
  /// final.
  [[nodiscard]] std::shared_ptr<SegmentNode> next() const {
    return has_next_.load(std::memory_order_acquire) ? next_ : nullptr;
  }

  // For the writer only.
  /// Indexes the segment's batches as they are appended, from the first one on. Requires: no other thread
  /// knows the node.
  void index_from_the_start() { growing_ = std::make_shared<SegmentIndex>(usable_bytes_); }
  void note_batch(Offset base, std::uint64_t position, Timestamp time) {
    if (growing_ != nullptr) growing_->note(base, position, time);
  }
  /// Returns the index of a segment that this process has written from its beginning; else null.
  [[nodiscard]] const std::shared_ptr<SegmentIndex>& growing_index() const { return growing_; }
  void publish(std::uint64_t end_position, Offset end_offset) {
    end_position_.store(end_position, std::memory_order_release);
    end_offset_.store(end_offset.value, std::memory_order_release);
  }
  void set_next(std::shared_ptr<SegmentNode> next) {
    next_ = std::move(next);
    has_next_.store(true, std::memory_order_release);
  }
  /// Sets the mapping through which the segment is written, and which its readers share. Requires: no other
  /// thread knows the node.
  void share(std::shared_ptr<WritableMapping> mapping) { writable_ = std::move(mapping); }

 private:
  friend class SegmentViews;
  const std::string path_;
  const SegmentHeader header_;
  const std::uint64_t usable_bytes_;
  const std::uint64_t trusted_from_;
  std::atomic<std::uint64_t> checked_up_to_{segment_header_bytes};
  std::atomic<std::uint64_t> end_position_;
  std::atomic<std::uint64_t> end_offset_;
  std::atomic<bool> has_next_{false};
  std::shared_ptr<SegmentNode> next_;
  std::shared_ptr<SegmentIndex> growing_;
  // Guarded by the mutex of SegmentViews. writable_: the writer's mapping, as long as the writer keeps it.
  // loaded_, loaded_end_: an index that was loaded or rebuilt, and its end position. view_: the current view.
  std::weak_ptr<WritableMapping> writable_;
  std::shared_ptr<const SegmentIndex> loaded_;
  std::uint64_t loaded_end_ = 0;
  std::weak_ptr<const SegmentView> view_;
};

/// Opens and locks the file of `node` in a log that another process may write. The lock keeps the file from
/// being recycled while it is open here. Also finds a segment that has no name yet. Errors: io_error; closed
/// if the file was dropped, or belongs or is about to belong to another segment.
Result<std::unique_ptr<File>> open_as_it_was(const SegmentNode& node, Storage& storage);

/// Returns the path for the segment's index file.
std::string segment_index_path(const SegmentNode& node);

/// The writer of the viewed log.
enum class ViewedLog {
  own,                ///< this process, which never recycles a file in use
  of_another_process  ///< perhaps another process: each file is locked, so that it is not recycled
};

/// The views of a log's segments. Keeps views mapped for later readers, up to a number of bytes; the least
/// recently used are dropped first. Keeps at most 64 views of another process's log. A view that a reader has
/// stays mapped, even above the cap. Thread: any; takes a lock.
class SegmentViews {
 public:
  /// `bytes_max`: the cap; 0: none. Lifetime: the storage must outlive this object.
  SegmentViews(Storage& storage, std::uint64_t bytes_max, ViewedLog viewed = ViewedLog::own)
      : storage_(storage), bytes_max_(bytes_max), viewed_(viewed) {}

  [[nodiscard]] ViewedLog viewed() const { return viewed_; }
  /// Opens the node's file for reading. Errors: for an own log io_error, with is_missing() if the segment was
  /// dropped; for another process's log those of open_as_it_was.
  Result<std::unique_ptr<File>> open(const SegmentNode& node) const;
  /// Returns the node's view, mapping the file if necessary. Errors: as for `open`.
  Result<std::shared_ptr<const SegmentView>> view(const std::shared_ptr<SegmentNode>& node);
  /// Returns the node's index: the growing one, else the one loaded from its file, else one rebuilt from the
  /// batch headers. A rebuilt index of a sealed segment in an own log is stored in a file. Null if the
  /// segment cannot be read.
  std::shared_ptr<const SegmentIndex> index(const std::shared_ptr<SegmentNode>& node);
  /// Drops the kept view of a segment, if there is one.
  void forget(const SegmentNode& node);
  /// Counts a mapping of the writer in mapped_bytes as long as it exists.
  std::shared_ptr<WritableMapping> counted(std::unique_ptr<WritableMapping> mapping);
  /// Returns true if a segment of `bytes` that is no longer written may stay mapped. There must be space for
  /// one more to be read and one to be written.
  [[nodiscard]] bool may_keep(std::uint64_t bytes) const {
    return bytes_max_ == 0 || mapped_bytes() + 2 * bytes <= bytes_max_;
  }
  /// Drops views that have no reader, the least recently used first, until there is space for `bytes` more or
  /// none is left.
  void make_room(std::uint64_t bytes);
  /// Sets the mapping through which the segment is written from now on; new readers share it.
  void share(SegmentNode& node, const std::shared_ptr<WritableMapping>& mapping);
  /// Returns true if more bytes are mapped than the cap permits.
  [[nodiscard]] bool is_above_cap() const { return bytes_max_ != 0 && bytes_max_ < mapped_bytes(); }
  /// Returns true if `bytes` more may be mapped.
  [[nodiscard]] bool has_room(std::uint64_t bytes) const {
    return bytes_max_ == 0 || mapped_bytes() + bytes <= bytes_max_;
  }
  /// Returns the bytes of segment files that are mapped now.
  [[nodiscard]] std::uint64_t mapped_bytes() const { return mapped_bytes_->load(std::memory_order_relaxed); }

 private:
  struct MappedFile;
  struct Kept {
    const SegmentNode* node;
    std::shared_ptr<const SegmentView> view;
  };
  Result<std::shared_ptr<const MappedFile>> map_file(const SegmentNode& node);
  void keep(const std::shared_ptr<const SegmentView>& view, const SegmentNode& node);
  std::list<Kept> take_until_room(std::uint64_t bytes);

  Storage& storage_;
  const std::uint64_t bytes_max_;
  const ViewedLog viewed_;
  std::mutex making_room_;  // locked before mutex_
  std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
  std::shared_ptr<std::atomic<std::uint64_t>> mapped_bytes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// Returns the mapping, counted by `views` unless that is null.
inline std::shared_ptr<WritableMapping> counted_by(SegmentViews* views,
                                                   std::unique_ptr<WritableMapping> mapping) {
  if (views == nullptr) return mapping;
  return views->counted(std::move(mapping));
}

}  // namespace lightq::log
