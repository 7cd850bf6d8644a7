/// The index of one segment: the positions of some of its batches, about one per 64 KiB, by offset and time.
/// Layer: log.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include <lightq/base/types.hpp>

#include "log/format/sparse_index.hpp"

namespace lightq::log {

/// A batch that has an entry in the index.
struct IndexedBatch {
  Offset offset;               ///< of its first record
  std::uint64_t position = 0;  ///< in the segment file
  /// The newest append time of all batches of the segment up to this one, itself included. It never
  /// decreases, even if the clock was set back.
  Timestamp newest;
  friend bool operator==(const IndexedBatch&, const IndexedBatch&) = default;
};

/// The index of one segment. Not movable. Thread: one thread adds batches, any thread searches meanwhile
/// without a lock. A published entry never changes. The index is never trusted over the log: a reader checks
/// the batch at the position that an entry names.
class SegmentIndex {
 public:
  static constexpr std::uint64_t spacing_bytes = SparseIndex::spacing_bytes;
  static constexpr Timestamp before_all{std::numeric_limits<std::int64_t>::min()};

  /// Creates the index of a segment file of `segment_bytes`. Allocates all entries, but touches their memory
  /// only as they are added. `newest`: the newest append time of the batches before the first one to be
  /// noted, if there are any.
  explicit SegmentIndex(std::uint64_t segment_bytes, Timestamp newest = before_all);
  SegmentIndex(const SegmentIndex&) = delete;
  SegmentIndex& operator=(const SegmentIndex&) = delete;

  /// Notes a batch; about one in 64 KiB becomes an entry. Requires: the writer calls this for every batch, in
  /// the order of the log.
  void note(Offset offset, std::uint64_t position, Timestamp time) {
    if (newest_.load(std::memory_order_relaxed) < time.us) newest_.store(time.us, std::memory_order_release);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == capacity_) return;
    if (count != 0 && position < entries_[count - 1].position + spacing_bytes) return;
    entries_[count] = {offset, position, newest()};
    count_.store(count + 1, std::memory_order_release);
  }

  /// Returns the last entry at or before `offset`; nothing: start at the segment's first batch.
  [[nodiscard]] std::optional<IndexedBatch> find(Offset offset) const;
  /// Returns the last entry for which it and all batches before it are older than `time`. The first batch
  /// appended at `time` or later, if there is one, lies behind it. Nothing: start at the segment's first
  /// batch.
  [[nodiscard]] std::optional<IndexedBatch> find(Timestamp time) const;
  /// Returns the newest append time of all noted batches; before_all if there is none.
  [[nodiscard]] Timestamp newest() const { return {newest_.load(std::memory_order_acquire)}; }
  /// Returns the entries so far, in the order of the log.
  [[nodiscard]] std::span<const IndexedBatch> entries() const {
    return {entries_.get(), count_.load(std::memory_order_acquire)};
  }
  /// Returns the maximum number of entries for a segment file of this length.
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
