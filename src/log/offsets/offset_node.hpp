/// The parts of an offset set: leaves of encoded runs, and nodes above them, shared between copies of the
/// set. Layer: log.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <lightq/base/types.hpp>

#include "log/offsets/run_code.hpp"

namespace lightq::log {

inline constexpr std::size_t offset_leaf_bytes_max = 512;
inline constexpr std::size_t offset_node_entries_max = 256;

/// The head of a leaf or of an inner node. The bytes of the leaf, or the entries of the inner node, follow it
/// in memory. `uses` counts the nodes and sets that point to it. A node with one user may be changed by this
/// user; any other node never changes. Thread: any that has a use reads; the only user changes.
struct OffsetNode {
  std::atomic<std::uint32_t> uses = 1;
  std::uint16_t used = 0;      ///< a leaf's bytes or an inner node's entries
  std::uint16_t capacity = 0;  ///< the limit of `used`
};

/// A subtree of an offset set: a leaf on level 0, an inner node above.
struct OffsetTree {
  Offset begin;                ///< its first offset; the runs of a leaf are encoded from here on
  std::uint64_t messages = 0;  ///< the number of its offsets
  OffsetNode* node = nullptr;  ///< null: the subtree is empty
};

static_assert(sizeof(OffsetNode) == 8 && sizeof(OffsetTree) == 24);

// --- Content ---

inline std::byte* leaf_bytes(OffsetNode& leaf) {
  return reinterpret_cast<std::byte*>(&leaf) + sizeof(OffsetNode);
}
inline const std::byte* leaf_bytes(const OffsetNode& leaf) {
  return reinterpret_cast<const std::byte*>(&leaf) + sizeof(OffsetNode);
}
/// Returns the entries of an inner node, in ascending order.
inline OffsetTree* entries_of(OffsetNode& node) {
  return reinterpret_cast<OffsetTree*>(leaf_bytes(node));
}
inline std::span<const OffsetTree> entries_of(const OffsetNode& node) {
  return {reinterpret_cast<const OffsetTree*>(leaf_bytes(node)), node.used};
}
/// Returns the index of the entry to which `offset` belongs: the last one that begins at it or before, or the
/// first one.
inline std::size_t entry_at(const OffsetNode& node, Offset offset) {
  const auto entries = entries_of(node);
  const auto after = std::ranges::upper_bound(entries, offset, {}, &OffsetTree::begin);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - entries.begin(), 1) - 1);
}

// --- Memory ---

/// Returns the capacity of a leaf that holds `used` bytes.
constexpr std::size_t leaf_capacity(std::size_t used) {
  if (used <= 16) return 16;
  if (used <= 32) return 32;
  return (used + 63) / 64 * 64;
}
/// Returns the capacity of an inner node that holds `used` entries.
constexpr std::size_t inner_capacity(std::size_t used) {
  if (used <= 2) return 2;
  if (used <= 4) return 4;
  if (used <= 8) return 8;
  return (used + 15) / 16 * 16;
}
/// Makes a leaf of `used` bytes that are not initialized. Requires: used <= offset_leaf_bytes_max.
OffsetNode* make_leaf(std::size_t used);
/// Makes an inner node of `used` empty entries. Requires: used <= offset_node_entries_max.
OffsetNode* make_inner(std::size_t used);
/// Returns the heap memory of one node in bytes, as the allocator rounds it.
constexpr std::size_t heap_bytes(std::size_t level, std::size_t capacity) {
  constexpr std::size_t allocator_bytes = 8;  // of each allocation
  constexpr std::size_t step_bytes = 16;
  const std::size_t bytes =
      sizeof(OffsetNode) + capacity * (level == 0 ? 1 : sizeof(OffsetTree)) + allocator_bytes;
  return (bytes + step_bytes - 1) / step_bytes * step_bytes;
}
/// Returns the heap memory of a node and all below it.
std::size_t heap_bytes_below(const OffsetNode& node, std::size_t level);

/// Adds a use.
inline void retain(OffsetNode& node) {
  node.uses.fetch_add(1, std::memory_order_relaxed);
}
/// Returns true if this is the only use, so that the node may be changed. Acquires all that earlier users
/// did.
inline bool is_sole_use(const OffsetNode& node) {
  return node.uses.load(std::memory_order_acquire) == 1;
}
/// Removes a use. The last one frees the node, and removes a use of each node below. An inner node may have
/// empty entries, after a change that found no memory.
void release(OffsetNode& node, std::size_t level);

/// A subtree that no node points to yet. Frees it, unless it was taken: for changes that find no memory.
class OwnedTree {
 public:
  OwnedTree() = default;
  OwnedTree(const OffsetTree& tree, std::size_t level) : tree_(tree), level_(level) {}
  OwnedTree(OwnedTree&& other) noexcept : tree_(other.take()), level_(other.level_) {}
  OwnedTree& operator=(OwnedTree&& other) noexcept {
    std::swap(tree_, other.tree_);
    std::swap(level_, other.level_);
    return *this;
  }
  ~OwnedTree() {
    if (tree_.node != nullptr) release(*tree_.node, level_);
  }

  [[nodiscard]] bool is_empty() const { return tree_.node == nullptr; }
  [[nodiscard]] OffsetTree& tree() { return tree_; }
  /// Returns the subtree, and gives it up.
  OffsetTree take() { return std::exchange(tree_, {}); }

 private:
  OffsetTree tree_;
  std::size_t level_ = 0;
};

}  // namespace lightq::log
