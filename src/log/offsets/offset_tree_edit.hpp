/// Changes the tree of an offset set. Layer: log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

namespace lightq::log {

/// One change of a set: removes a range, and may put one run in its place. Copies each node that it changes
/// and that has other users.
/// Invariants: a leaf has 1 to 512 bytes; two neighbours in a node have more than 384 together. An inner node
/// has 1 to 256 entries; two neighbours in a node have more than 192 together. The root has at least two.
/// Lifetime: the set outlives it. A value for one call of `cut` or `put`.
class OffsetTreeEdit {
 public:
  using RemovedSink = OffsetSet::RemovedSink;

  explicit OffsetTreeEdit(OffsetSet& set) : set_(set) {}

  /// Removes `range`, and calls `removed` for each run in it. Requires: something of it is in the set.
  void cut(OffsetRange range, RemovedSink removed);
  /// Adds `run` in place of all that is in it. Requires: no run of the set touches or crosses its borders.
  void put(OffsetRange run);

 private:
  /// A place in a leaf: the position of a code, and the end of the run before it.
  struct Place {
    std::size_t at = 0;
    Offset before;
  };
  /// The part of a leaf that a change replaces.
  struct Splice {
    std::size_t from = 0;  // position of the first replaced code
    std::size_t to = 0;    // position after the last one
    Offset before;         // end of the run before `from`
    std::uint64_t removed = 0;
    std::array<OffsetRange, 4> runs{};  // to be encoded in their place
    std::size_t run_count = 0;

    void add(OffsetRange run) { runs[run_count++] = run; }
  };
  /// The new codes of a splice.
  struct Codes {
    std::array<std::byte, 4 * run_code_bytes_max> bytes{};
    std::size_t size = 0;
    std::size_t last_at = 0;  // position of the last code in `bytes`
  };

  void apply();
  void edit(OffsetTree& tree, std::size_t level, Offset limit);
  void edit_inner(OffsetTree& tree, std::size_t level, Offset limit);
  void insert_split(OffsetTree& tree, std::size_t level, std::size_t at);
  void join_around(OffsetNode& node, std::size_t level, std::size_t first, std::size_t end);
  void join(OffsetNode& node, std::size_t level, std::size_t left);
  void join_leaves(OffsetTree& left, OffsetTree& right);
  void join_inner(OffsetTree& left, OffsetTree& right, std::size_t level);

  void edit_leaf(OffsetTree& tree, bool is_last);
  [[nodiscard]] Place start_in(const OffsetTree& tree, bool is_last) const;
  Splice splice_of(const OffsetTree& tree, Place place);
  static Codes encode(const Splice& splice);
  void replace(OffsetTree& leaf, const Splice& splice, const Codes& codes);
  void split_leaf(OffsetTree& leaf, const Splice& splice, const Codes& codes, bool is_last);
  void note_last(const Splice& splice, const Codes& codes, std::size_t used_before);

  void own(OffsetTree& tree, std::size_t level);
  void fit_leaf(OffsetTree& leaf, std::size_t used);
  void fit_inner(OffsetTree& inner, std::size_t used);
  void drop(OffsetTree& tree, std::size_t level);
  void tell_all(const OffsetTree& tree, std::size_t level) const;

  OffsetSet& set_;
  OffsetRange cut_;
  std::optional<OffsetRange> put_;
  RemovedSink removed_;
  OwnedTree split_;  // the right part of the node that `edit` has split; null if it has not
};

}  // namespace lightq::log
