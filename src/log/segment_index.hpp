/// Where some batches of one segment lie, about one per 64 KiB, by offset and by time. Layer: log.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include <lightq/base/types.hpp>

#include "log/sparse_index.hpp"

namespace lightq::log {

/// A batch that an index knows.
struct IndexedBatch {
  Offset offset;               ///< of its first record
  std::uint64_t position = 0;  ///< in the segment file
  /// The newest append time of all batches of the segment up to and including this one: a clock that was set
  /// back does not make it smaller.
  Timestamp newest;
  friend bool operator==(const IndexedBatch&, const IndexedBatch&) = default;
};

/// The index of one segment. One thread notes batches; any thread searches meanwhile, without a lock: an
/// entry never changes once it can be seen. Never trusted over the log: who goes where it says checks the
/// batch that is there. Not movable.
class SegmentIndex {
 public:
  static constexpr std::uint64_t spacing_bytes = SparseIndex::spacing_bytes;
  static constexpr Timestamp before_all{std::numeric_limits<std::int64_t>::min()};

  /// For a segment file of `segment_bytes`; memory is taken for all its entries, and touched as they come.
  /// `newest`: of the batches before the first that will be noted, if there are any.
  explicit SegmentIndex(std::uint64_t segment_bytes, Timestamp newest = before_all);
  SegmentIndex(const SegmentIndex&) = delete;
  SegmentIndex& operator=(const SegmentIndex&) = delete;

  /// Notes a batch: every one, in the order of the log; about one in 64 KiB becomes an entry. The writer.
  void note(Offset offset, std::uint64_t position, Timestamp time) {
    if (newest_.load(std::memory_order_relaxed) < time.us) newest_.store(time.us, std::memory_order_release);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == capacity_) return;
    if (count != 0 && position < entries_[count - 1].position + spacing_bytes) return;
    entries_[count] = {offset, position, newest()};
    count_.store(count + 1, std::memory_order_release);
  }

  /// The last entry at or before `offset`; nothing: begin at the segment's first batch.
  [[nodiscard]] std::optional<IndexedBatch> find(Offset offset) const;
  /// The last entry up to which, itself included, every batch is older than `time`: the first batch appended
  /// at `time` or later comes behind it, if there is one. Nothing: begin at the segment's first batch.
  [[nodiscard]] std::optional<IndexedBatch> find(Timestamp time) const;
  /// The newest append time of all batches noted; before_all if there is none.
  [[nodiscard]] Timestamp newest() const { return {newest_.load(std::memory_order_acquire)}; }
  /// The entries so far, in the order of the log.
  [[nodiscard]] std::span<const IndexedBatch> entries() const {
    return {entries_.get(), count_.load(std::memory_order_acquire)};
  }
  /// How many entries a segment file of so many bytes can have.
  [[nodiscard]] static constexpr std::size_t entries_max(std::uint64_t segment_bytes) {
    return segment_bytes / spacing_bytes + 1;
  }

 private:
  friend class SegmentIndexFile;

  std::size_t capacity_;
  std::unique_ptr<IndexedBatch[]> entries_;
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::int64_t> newest_;
};

}  // namespace lightq::log
