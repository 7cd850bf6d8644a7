/// A sparse index: where some batches lie, about one per 64 KiB, so that an offset is found by a binary
/// search and a short walk. Layer: log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <lightq/base/fetch_ahead.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// Entries ascend in offset and position. In memory only, and always rebuilt from the log: never trusted
/// over it. One thread.
class SparseIndex {
 public:
  static constexpr std::uint64_t spacing_bytes = 64 * limits::KiB;

  struct Entry {
    Offset offset;  ///< of a batch's first record
    std::uint64_t position = 0;
  };

  /// Notes a batch, if it lies far enough behind the last one noted. Batches before that are ignored.
  void note(Offset offset, std::uint64_t position) {
    if (first_ != entries_.size() && position < entries_.back().position + spacing_bytes) return;
    entries_.push_back({offset, position});
  }

  /// Asks the processor for what `note` looks at.
  void fetch_ahead() const {
    if (!entries_.empty()) lightq::fetch_ahead(&entries_.back());
  }

  /// The last entry at or before `offset`; null if there is none.
  [[nodiscard]] const Entry* find(Offset offset) const {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto after = std::upper_bound(begin, entries_.end(), offset, [](Offset wanted, const Entry& entry) {
      return wanted < entry.offset;
    });
    return after == begin ? nullptr : &*(after - 1);
  }

  /// Forgets the entries before `position`.
  void drop_before(std::uint64_t position) {
    while (first_ != entries_.size() && entries_[first_].position < position) ++first_;
    if (first_ == entries_.size()) {
      clear();
    } else if (first_ >= 64 && first_ * 2 > entries_.size()) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  void clear() {
    entries_.clear();
    first_ = 0;
  }
  /// As clear, and gives the memory back.
  void release() { *this = SparseIndex(); }

 private:
  std::vector<Entry> entries_;
  std::size_t first_ = 0;  // entries_ before it are dropped
};

}  // namespace lightq::log
