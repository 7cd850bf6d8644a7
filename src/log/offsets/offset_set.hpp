/// A set of offsets as compressed runs, with copies that take constant time. Layer: log.
/// docs/adr/0056-keep-a-groups-messages-as-compressed-runs.md.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_node.hpp"

namespace lightq::log {

class OffsetSetBuilder;

/// A set of offsets, kept as its maximal runs, in ascending order. A run takes 1 to 20 bytes, whatever its
/// length: 1 byte for a single offset at most 63 behind the run before it.
/// Copies share all memory; a change copies only the nodes on its path. So a copy is a snapshot that costs
/// nothing until the original changes.
/// Thread: one uses a set at a time. Copies of it may be read, changed and destroyed on other threads.
/// Example: after add([0, 5)), add([5, 8)) and remove([2, 4)) its runs are [0, 2) and [4, 8).
class OffsetSet {
 public:
  class Runs;

  /// Creates an empty set, which has no memory on the heap.
  OffsetSet() = default;
  OffsetSet(const OffsetSet& other);
  OffsetSet(OffsetSet&& other) noexcept;
  OffsetSet& operator=(const OffsetSet& other);
  OffsetSet& operator=(OffsetSet&& other) noexcept;
  ~OffsetSet();

  [[nodiscard]] bool empty() const { return root_.node == nullptr; }
  /// Returns the number of offsets.
  [[nodiscard]] std::uint64_t size() const { return root_.messages; }
  /// Returns the heap memory of this set in bytes, including memory that copies share. 0 if it is empty.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Returns the lowest offset. Requires: !empty().
  [[nodiscard]] Offset first() const {
    assert(!empty());
    return root_.begin;
  }
  [[nodiscard]] bool contains(Offset offset) const;
  /// Returns the first maximal run that ends after `offset`, whole, or nothing if there is none.
  [[nodiscard]] std::optional<OffsetRange> first_behind(Offset offset) const;
  /// Returns the end of the last run: one past the highest offset. Requires: !empty().
  [[nodiscard]] Offset end() const;
  /// Returns how many offsets of `range` are in the set.
  [[nodiscard]] std::uint64_t count_in(OffsetRange range) const;

  /// Adds a range, which may overlap or touch runs of the set. An empty range changes nothing.
  void add(OffsetRange range);
  /// Removes a range. An empty range changes nothing.
  void remove(OffsetRange range) { remove_parts(range, {}); }
  /// Removes a range, and calls `removed(part)` for each run in it that was in the set, in ascending order.
  /// `removed` must not use this set.
  template <typename Removed>
  void remove(OffsetRange range, Removed&& removed) {
    using Call = std::remove_reference_t<Removed>;
    void* const call = const_cast<void*>(static_cast<const void*>(std::addressof(removed)));
    remove_parts(range,
                 {call, [](void* context, OffsetRange part) { (*static_cast<Call*>(context))(part); }});
  }
  void clear();

  /// Calls `visit(run)` for each maximal run, in ascending order. `visit` must not change this set.
  template <typename Visit>
  void for_each(Visit&& visit) const;

  /// Returns true if both sets use the same memory, so that they are equal. Takes constant time. Sets that
  /// are equal need not share.
  [[nodiscard]] bool shares_all_with(const OffsetSet& other) const { return root_.node == other.root_.node; }
  /// Compares the content. Takes time for each run that the sets do not share.
  friend bool operator==(const OffsetSet& left, const OffsetSet& right);

 private:
  friend class OffsetSetBuilder;
  friend class OffsetTreeEdit;

  /// A function that receives the removed runs; `call` is null if nobody wants them.
  struct RemovedSink {
    void* context = nullptr;
    void (*call)(void* context, OffsetRange part) = nullptr;
  };
  /// The last run, if its place in the last leaf is known.
  struct LastRun {
    static constexpr std::uint16_t unknown = 0xFFFF;
    OffsetRange run;
    std::uint16_t at = unknown;  // its position in the leaf
  };

  [[nodiscard]] bool is_last_known() const { return last_.at != LastRun::unknown; }
  /// Returns the first run that ends at `end_min` or later.
  [[nodiscard]] std::optional<OffsetRange> find_run(Offset end_min) const;
  /// Returns how many offsets of the set are below `offset`.
  [[nodiscard]] std::uint64_t count_below(Offset offset) const;
  void remove_parts(OffsetRange range, RemovedSink removed);

  OffsetTree root_;
  std::size_t bytes_ = 0;
  LastRun last_;
  std::uint16_t levels_ = 0;  // above the leaves
};

/// Returns the runs of a set one after the other, for merges of several sets.
/// Lifetime: the set outlives it. Requires: the set does not change meanwhile.
class OffsetSet::Runs {
 public:
  explicit Runs(const OffsetSet& set);

  /// Returns the next run in ascending order, or nothing at the end.
  std::optional<OffsetRange> next();

 private:
  friend bool operator==(const OffsetSet& left, const OffsetSet& right);

  // 96 entries at least in each node but one of a level: eight levels are beyond any memory.
  static constexpr std::size_t levels_max = 8;
  struct Step {
    const OffsetNode* node = nullptr;
    std::uint16_t next = 0;
  };
  void enter(const OffsetTree& tree, std::size_t level);
  bool next_leaf();

  std::array<Step, levels_max> above_{};  // by level - 1
  std::size_t levels_ = 0;
  const std::byte* at_ = nullptr;  // in the leaf
  const std::byte* leaf_end_ = nullptr;
  const OffsetNode* leaf_ = nullptr;  // not yet read from, or null
  Offset before_;                     // end of the run before
};

template <typename Visit>
void OffsetSet::for_each(Visit&& visit) const {
  Runs runs(*this);
  while (const auto run = runs.next()) visit(*run);
}

}  // namespace lightq::log
