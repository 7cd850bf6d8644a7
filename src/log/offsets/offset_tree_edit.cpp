/// Changes the tree of an offset set: the inner nodes. The leaves: offset_leaf_edit.cpp. Layer: log.
#include "log/offsets/offset_tree_edit.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace lightq::log {

namespace {

constexpr std::size_t joined_entries_max = 192;
constexpr std::size_t joined_leaf_bytes_max = 384;
constexpr Offset no_offset_limit{std::numeric_limits<std::uint64_t>::max()};

std::uint64_t messages_of(const OffsetTree* first, const OffsetTree* end) {
  std::uint64_t messages = 0;
  for (; first != end; ++first) messages += first->messages;
  return messages;
}

}  // namespace

void OffsetTreeEdit::cut(OffsetRange range, RemovedSink removed) {
  cut_ = range;
  removed_ = removed;
  put_.reset();
  apply();
}

// A run that reaches past its leaf replaces everything in it first, so that it then fits between two leaves.
void OffsetTreeEdit::put(OffsetRange run) {
  if (set_.empty()) {
    std::array<std::byte, run_code_bytes_max> code{};
    const auto size = static_cast<std::size_t>(store_run(code.data(), run.begin, run) - code.data());
    OffsetNode* const leaf = make_leaf(size);
    std::copy_n(code.data(), size, leaf_bytes(*leaf));
    set_.root_ = {run.begin, distance(run.begin, run.end), leaf};
    set_.bytes_ = heap_bytes(0, leaf->capacity);
    set_.last_ = {run, 0};
    return;
  }
  Offset limit = no_offset_limit;
  const OffsetNode* node = set_.root_.node;
  for (std::size_t level = set_.levels_; level != 0; --level) {
    const auto entries = entries_of(*node);
    const std::size_t at = entry_at(*node, run.begin);
    if (at + 1 < entries.size()) limit = entries[at + 1].begin;
    node = entries[at].node;
  }
  if (limit < run.end) {
    cut(run, {});
    return put(run);
  }
  cut_ = run;
  put_ = run;
  apply();
}

/// Changes the tree from the root on, which then may have one level more or less.
void OffsetTreeEdit::apply() {
  OffsetTree& root = set_.root_;
  edit(root, set_.levels_, no_offset_limit);
  if (root.node == nullptr) {
    assert(set_.bytes_ == 0 && root.messages == 0);
    set_.levels_ = 0;
    set_.last_ = {};
    root = {};
    return;
  }
  if (!split_.is_empty()) {
    OffsetNode* const above = make_inner(2);
    entries_of(*above)[0] = root;
    entries_of(*above)[1] = split_.take();
    root.messages = messages_of(entries_of(*above), entries_of(*above) + 2);
    root.node = above;
    ++set_.levels_;
    set_.bytes_ += heap_bytes(set_.levels_, above->capacity);
  }
  while (set_.levels_ != 0 && root.node->used == 1) {
    const OffsetTree only = entries_of(*root.node)[0];
    set_.bytes_ -= heap_bytes(set_.levels_, root.node->capacity);
    retain(*only.node);
    release(*root.node, set_.levels_);
    root = only;
    --set_.levels_;
  }
}

/// Changes a subtree, which ends before `limit`. Afterwards `tree` may be empty, or `split_` follows it.
void OffsetTreeEdit::edit(OffsetTree& tree, std::size_t level, Offset limit) {
  own(tree, level);
  if (level == 0) {
    edit_leaf(tree, limit == no_offset_limit);
  } else {
    edit_inner(tree, level, limit);
  }
}

void OffsetTreeEdit::edit_inner(OffsetTree& tree, std::size_t level, Offset limit) {
  OffsetNode& node = *tree.node;
  OffsetTree* const entries = entries_of(node);
  const std::size_t first = entry_at(node, cut_.begin);
  std::size_t end = first + 1;
  while (!put_ && end < node.used && entries[end].begin < cut_.end) ++end;
  tree.messages -= messages_of(entries + first, entries + end);
  std::size_t kept = first;  // entries before it stay
  for (std::size_t i = first; i < end; ++i) {
    const Offset next = i + 1 < node.used ? entries[i + 1].begin : limit;
    if (!put_ && cut_.begin <= entries[i].begin && next <= cut_.end) {
      drop(entries[i], level - 1);
    } else {
      edit(entries[i], level - 1, next);
    }
    const OffsetTree changed = std::exchange(entries[i], {});
    if (changed.node != nullptr) entries[kept++] = changed;
  }
  tree.messages += messages_of(entries + first, entries + kept);
  if (kept != end) std::copy(entries + end, entries + node.used, entries + kept);
  node.used = static_cast<std::uint16_t>(node.used - (end - kept));
  if (node.used == 0) {
    set_.bytes_ -= heap_bytes(level, node.capacity);
    release(node, level);
    tree = {};
    return;
  }
  if (!split_.is_empty()) {
    insert_split(tree, level, first + 1);
  } else {
    join_around(node, level - 1, first, kept);
    fit_inner(tree, node.used);
  }
  tree.begin = entries_of(*tree.node)[0].begin;
}

/// Inserts `split_` as the entry `at`. If the node is full, it is split, too.
void OffsetTreeEdit::insert_split(OffsetTree& tree, std::size_t level, std::size_t at) {
  OwnedTree inserted = std::exchange(split_, {});
  const OffsetTree added = inserted.tree();
  OffsetTree* into = &tree;
  tree.messages += added.messages;
  if (tree.node->used == offset_node_entries_max) {
    const std::size_t left = offset_node_entries_max / 2;
    const std::size_t right = offset_node_entries_max - left;
    OffsetTree* const from = entries_of(*tree.node) + left;
    OffsetTree moved{from->begin, messages_of(from, from + right), make_inner(right)};
    set_.bytes_ += heap_bytes(level, moved.node->capacity);
    std::copy_n(from, right, entries_of(*moved.node));
    split_ = OwnedTree(moved, level);
    tree.messages -= moved.messages;
    tree.node->used = static_cast<std::uint16_t>(left);
    if (left < at) {
      into = &split_.tree();
      at -= left;
      // It was counted in the left part.
      tree.messages -= added.messages;
      into->messages += added.messages;
    }
    if (into != &tree) fit_inner(tree, left);
  }
  const std::size_t used = into->node->used;
  fit_inner(*into, used + 1);
  OffsetTree* const entries = entries_of(*into->node);
  std::copy_backward(entries + at, entries + used, entries + used + 1);
  entries[at] = inserted.take();
  into->node->used = static_cast<std::uint16_t>(used + 1);
  // Either part of the split node may be small enough for a neighbour.
  join_around(*into->node, level - 1, at - 1, at + 1);
}

/// Joins small neighbours among the entries [first - 1, end].
void OffsetTreeEdit::join_around(OffsetNode& node, std::size_t level, std::size_t first, std::size_t end) {
  const std::size_t lowest = std::max<std::size_t>(first, 1) - 1;
  for (std::size_t i = std::min<std::size_t>(end + 1, node.used); i-- > lowest;) join(node, level, i);
}

/// Joins the entries `left` and `left` + 1 if both exist and are small.
void OffsetTreeEdit::join(OffsetNode& node, std::size_t level, std::size_t left) {
  if (node.used <= left + 1) return;
  OffsetTree* const entries = entries_of(node);
  const std::size_t together = std::size_t{entries[left].node->used} + entries[left + 1].node->used;
  if (together > (level == 0 ? joined_leaf_bytes_max : joined_entries_max)) return;
  own(entries[left], level);
  if (level == 0) {
    join_leaves(entries[left], entries[left + 1]);
  } else {
    join_inner(entries[left], entries[left + 1], level);
  }
  std::copy(entries + left + 2, entries + node.used, entries + left + 1);
  --node.used;
}

void OffsetTreeEdit::join_inner(OffsetTree& left, OffsetTree& right, std::size_t level) {
  const std::size_t before = left.node->used;
  const auto added = entries_of(std::as_const(*right.node));
  fit_inner(left, before + added.size());
  std::ranges::copy(added, entries_of(*left.node) + before);
  for (const OffsetTree& entry : added) retain(*entry.node);
  left.node->used = static_cast<std::uint16_t>(before + added.size());
  left.messages += right.messages;
  set_.bytes_ -= heap_bytes(level, right.node->capacity);
  release(*right.node, level);
  join(*left.node, level - 1, before - 1);
}

// --- Nodes ---

/// Makes this set the only user of the subtree's top node.
void OffsetTreeEdit::own(OffsetTree& tree, std::size_t level) {
  OffsetNode& shared = *tree.node;
  if (is_sole_use(shared)) return;
  OffsetNode* copy = nullptr;
  if (level == 0) {
    copy = make_leaf(shared.used);
    std::copy_n(leaf_bytes(shared), shared.used, leaf_bytes(*copy));
  } else {
    copy = make_inner(shared.used);
    std::copy_n(entries_of(shared), shared.used, entries_of(*copy));
    for (const OffsetTree& entry : entries_of(std::as_const(*copy))) retain(*entry.node);
  }
  set_.bytes_ += heap_bytes(level, copy->capacity);
  set_.bytes_ -= heap_bytes(level, shared.capacity);
  tree.node = copy;
  release(shared, level);
}

/// Changes the capacity of an inner node if `used` needs more, or much less. Requires: the node is owned.
void OffsetTreeEdit::fit_inner(OffsetTree& inner, std::size_t used) {
  OffsetNode& before = *inner.node;
  const std::size_t capacity = inner_capacity(used);
  const bool is_roomy = capacity * 2 < before.capacity || capacity + 32 < before.capacity;
  if (capacity <= before.capacity && !is_roomy) return;
  OffsetNode* const after = make_inner(used);
  const std::size_t kept = std::min<std::size_t>(used, before.used);
  std::copy_n(entries_of(before), kept, entries_of(*after));
  after->used = static_cast<std::uint16_t>(kept);
  set_.bytes_ += heap_bytes(1, after->capacity);
  set_.bytes_ -= heap_bytes(1, before.capacity);
  before.used = 0;  // its entries are in `after`
  release(before, 1);
  inner.node = after;
}

/// Removes a subtree that is wholly cut.
void OffsetTreeEdit::drop(OffsetTree& tree, std::size_t level) {
  if (removed_.call != nullptr) tell_all(tree, level);
  set_.bytes_ -= heap_bytes_below(*tree.node, level);
  set_.last_.at = OffsetSet::LastRun::unknown;
  release(*tree.node, level);
  tree = {};
}

void OffsetTreeEdit::tell_all(const OffsetTree& tree, std::size_t level) const {
  if (level != 0) {
    for (const OffsetTree& entry : entries_of(std::as_const(*tree.node))) tell_all(entry, level - 1);
    return;
  }
  const std::byte* at = leaf_bytes(std::as_const(*tree.node));
  const std::byte* const end = at + tree.node->used;
  for (OffsetRange run{tree.begin, tree.begin}; at != end;) {
    run = load_run(at, run.end);
    removed_.call(removed_.context, run);
  }
}

}  // namespace lightq::log
