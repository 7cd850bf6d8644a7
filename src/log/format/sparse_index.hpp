/// A sparse index of batches: positions, about one per 64 KiB, and how new the batches between are. An offset
/// is found by a binary search and a short walk, a time by a check of each entry and a short walk. Layer:
/// log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// Positions of some batches; the entries ascend in offset and position. The index is only in memory and
/// always rebuilt from the log; it is never trusted over the log. Thread: one.
class SparseIndex {
 public:
  static constexpr std::uint64_t spacing_bytes = 64 * limits::KiB;

  struct Entry {
    Offset offset;  ///< of a batch's first record
    std::uint64_t position = 0;
    /// The newest append time of all noted batches from this one to before the next entry.
    Timestamp newest;
  };

  /// Notes a batch. It becomes an entry if it is at least spacing_bytes behind the last entry.
  void note(Offset offset, std::uint64_t position, Timestamp time) {
    if (first_ != entries_.size() && position < entries_.back().position + spacing_bytes) {
      if (entries_.back().newest < time) entries_.back().newest = time;
      return;
    }
    entries_.push_back({offset, position, time});
  }

  /// Returns the entries in the order of the log.
  [[nodiscard]] std::span<const Entry> entries() const { return std::span(entries_).subspan(first_); }

  /// Asks the processor to prefetch the memory that `note` reads.
  void fetch_ahead() const {
    if (!entries_.empty()) lightq::fetch_ahead(&entries_.back());
  }

  /// Returns the last entry at or before `offset`; null if there is none.
  [[nodiscard]] const Entry* find(Offset offset) const {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto after = std::upper_bound(begin, entries_.end(), offset, [](Offset wanted, const Entry& entry) {
      return wanted < entry.offset;
    });
    return after == begin ? nullptr : &*(after - 1);
  }

  /// Removes the entries before `position`.
  void drop_before(std::uint64_t position) {
    while (first_ != entries_.size() && entries_[first_].position < position) ++first_;
    if (first_ == entries_.size()) {
      clear();
    } else if (first_ >= 64 && first_ * 2 > entries_.size()) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  /// Removes the entries at and behind `position`.
  void drop_from(std::uint64_t position) {
    while (first_ != entries_.size() && entries_.back().position >= position) entries_.pop_back();
  }

  void clear() {
    entries_.clear();
    first_ = 0;
  }
  /// Removes all entries and frees the memory.
  void release() { *this = SparseIndex(); }

 private:
  std::vector<Entry> entries_;
  std::size_t first_ = 0;  // index of the first entry; those before it are removed
};

}  // namespace lightq::log
