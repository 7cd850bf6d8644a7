/// What readers on other threads see of a segment, and the views that they read it through. Layer: log.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "log/segment_format.hpp"
#include "log/segment_index.hpp"
#include "log/storage.hpp"

namespace lightq::log {

class SegmentNode;

/// A mapped segment. Keeps the bytes valid and its file from being written again, as long as somebody holds
/// it. Immutable; any thread.
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
  /// Has the pages of [begin, end) made ready, unless that was done before. (Those of the writer's mapping
  /// are.)
  void populate(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::shared_ptr<SegmentNode> node_;
  std::shared_ptr<const void> mapping_;
  const Mapping* of_its_own_;  // in mapping_; null: the writer's
  // One stretch that is ready: readers mostly follow each other. Only a hint: races cost a call at most.
  mutable std::atomic<std::uint64_t> ready_begin_ = 0;
  mutable std::atomic<std::uint64_t> ready_end_ = 0;
  const std::byte* data_;
  std::size_t bytes_;
  std::shared_ptr<std::atomic<std::uint64_t>> counted_;  // null: the writer's own mapping
};

/// One segment in the chain of a log's segments: immutable but for its end, which only grows, and its
/// successor, which is set once. One writer; any number of readers, without locks.
class SegmentNode {
 public:
  /// `trusted_from`: batches at or past this position were written or checked by this process.
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
  /// Batches before this position have been checked, by one reader or another. Only grows.
  [[nodiscard]] std::uint64_t checked_up_to() const { return checked_up_to_.load(std::memory_order_acquire); }
  /// The batches from `begin` up to `end` are sound.
  void note_checked(std::uint64_t begin, std::uint64_t end) {
    checked_up_to_.compare_exchange_strong(begin, end, std::memory_order_release, std::memory_order_relaxed);
  }

  /// Where its complete batches end.
  [[nodiscard]] std::uint64_t end_position() const { return end_position_.load(std::memory_order_acquire); }
  /// Of the complete batches. May be one batch behind end_position.
  [[nodiscard]] Offset end_offset() const { return {end_offset_.load(std::memory_order_acquire)}; }
  /// The segment after it; null while there is none. Its end is final once there is one.
  [[nodiscard]] std::shared_ptr<SegmentNode> next() const {
    return has_next_.load(std::memory_order_acquire) ? next_ : nullptr;
  }

  // The writer's.
  /// Its batches are indexed as they come, from the first one on; before anybody else knows the node.
  void index_from_the_start() { growing_ = std::make_shared<SegmentIndex>(usable_bytes_); }
  void note_batch(Offset base, std::uint64_t position, Timestamp time) {
    if (growing_ != nullptr) growing_->note(base, position, time);
  }
  /// The index of a segment that was written by this process from its beginning; else null.
  [[nodiscard]] const std::shared_ptr<SegmentIndex>& growing_index() const { return growing_; }
  void publish(std::uint64_t end_position, Offset end_offset) {
    end_position_.store(end_position, std::memory_order_release);
    end_offset_.store(end_offset.value, std::memory_order_release);
  }
  void set_next(std::shared_ptr<SegmentNode> next) {
    next_ = std::move(next);
    has_next_.store(true, std::memory_order_release);
  }
  /// The mapping that the segment is written through: its readers share it. Before anybody else knows the
  /// node.
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
  // Guarded by the mutex of SegmentViews: what it is written through, as long as its writer has that; an
  // index that was loaded or made anew, and up to where; and the view.
  std::weak_ptr<WritableMapping> writable_;
  std::shared_ptr<const SegmentIndex> loaded_;
  std::uint64_t loaded_end_ = 0;
  std::weak_ptr<const SegmentView> view_;
};

/// Of a log that another process may write: the file of `node`, locked, so that it is not recycled as long as
/// it is open here; also while it has no name yet. Errors: io_error; closed if it is gone, or has become, or
/// is about to become, that of another segment.
Result<std::unique_ptr<File>> open_as_it_was(const SegmentNode& node, Storage& storage);

/// Where a segment's index belongs.
std::string segment_index_path(const SegmentNode& node);

/// Whose segments are viewed.
enum class ViewedLog {
  own,           ///< this process writes it, and sees to it that no file in use is written again
  of_a_stranger  ///< another process may: each file is locked, so that it is not recycled
};

/// The views of a log's segments: at most so many bytes stay mapped for whoever comes back, the least
/// recently used go first, and of a stranger at most a few dozen files. What a reader holds stays, whatever
/// the cap. Any thread; takes a lock.
class SegmentViews {
 public:
  /// `bytes_max` 0: no cap. The storage must outlive it.
  SegmentViews(Storage& storage, std::uint64_t bytes_max, ViewedLog viewed = ViewedLog::own)
      : storage_(storage), bytes_max_(bytes_max), viewed_(viewed) {}

  [[nodiscard]] ViewedLog viewed() const { return viewed_; }
  /// The node's file, to be read. Errors: of an own log io_error, is_missing() if it has been dropped; of a
  /// stranger's those of open_as_it_was.
  Result<std::unique_ptr<File>> open(const SegmentNode& node) const;
  /// The node's view, mapped if it is not. Errors: as open.
  Result<std::shared_ptr<const SegmentView>> view(const std::shared_ptr<SegmentNode>& node);
  /// The node's index: the growing one, or the file beside the segment, or one made from the batch headers
  /// (and, of a sealed segment of an own log, written beside it then). Null where it cannot be read.
  std::shared_ptr<const SegmentIndex> index(const std::shared_ptr<SegmentNode>& node);
  /// Keeps no view of it any more.
  void forget(const SegmentNode& node);
  /// A mapping that the writer makes, counted as long as somebody has it.
  std::shared_ptr<WritableMapping> counted(std::unique_ptr<WritableMapping> mapping);
  /// Whether a segment of `bytes` that is not written any more may stay mapped: there must be room for one to
  /// be read and one to be written besides.
  [[nodiscard]] bool may_keep(std::uint64_t bytes) const {
    return bytes_max_ == 0 || mapped_bytes() + 2 * bytes <= bytes_max_;
  }
  /// Gives up views that nobody uses, the least recently used first, until there is room for so many bytes
  /// more or none is left.
  void make_room(std::uint64_t bytes);
  /// The segment is written through `mapping` from now on: who comes to read it shares that.
  void share(SegmentNode& node, const std::shared_ptr<WritableMapping>& mapping);
  /// More is mapped than there should be.
  [[nodiscard]] bool is_above_cap() const { return bytes_max_ != 0 && bytes_max_ < mapped_bytes(); }
  /// There is room for so many bytes more.
  [[nodiscard]] bool has_room(std::uint64_t bytes) const {
    return bytes_max_ == 0 || mapped_bytes() + bytes <= bytes_max_;
  }
  /// Of segment files, mapped now.
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
  std::mutex making_room_;  // taken before mutex_
  std::mutex mutex_;
  std::list<Kept> kept_;  // the most recently used first
  std::shared_ptr<std::atomic<std::uint64_t>> mapped_bytes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// The mapping, counted by `views` if there are any.
inline std::shared_ptr<WritableMapping> counted_by(SegmentViews* views,
                                                   std::unique_ptr<WritableMapping> mapping) {
  if (views == nullptr) return mapping;
  return views->counted(std::move(mapping));
}

}  // namespace lightq::log
