/// Builds an offset set from ascending runs. Layer: log.
#include "log/offsets/offset_set_builder.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace lightq::log {

namespace {

/// The finished subtrees of one level. Frees those that no node above has taken, if there is no memory for
/// it.
struct BuiltLevel {
  std::vector<OffsetTree> trees;
  std::size_t level = 0;

  BuiltLevel(std::vector<OffsetTree> built, std::size_t of_level)
      : trees(std::move(built)), level(of_level) {}
  BuiltLevel(const BuiltLevel&) = delete;
  BuiltLevel& operator=(const BuiltLevel&) = delete;
  ~BuiltLevel() {
    for (const OffsetTree& tree : trees) {
      if (tree.node != nullptr) release(*tree.node, level);
    }
  }
};

}  // namespace

OffsetSetBuilder::~OffsetSetBuilder() {
  const BuiltLevel unfinished(std::move(leaves_), 0);
}

void OffsetSetBuilder::append(OffsetRange run) {
  if (run.end <= run.begin) return;
  assert(pending_.end <= run.begin);
  if (pending_.begin < pending_.end && pending_.end == run.begin) {
    pending_.end = run.end;
    return;
  }
  encode(pending_);
  pending_ = run;
}

void OffsetSetBuilder::encode(OffsetRange run) {
  if (run.end <= run.begin) return;
  std::array<std::byte, run_code_bytes_max> code{};
  auto code_size = static_cast<std::size_t>(store_run(code.data(), end_, run) - code.data());
  if (leaf_bytes_ + code_size > leaf_.size()) close_leaf();
  if (leaf_bytes_ == 0) {
    open_.begin = run.begin;
    code_size = static_cast<std::size_t>(store_run(code.data(), run.begin, run) - code.data());
  }
  std::memcpy(leaf_.data() + leaf_bytes_, code.data(), code_size);
  leaf_bytes_ += code_size;
  open_.messages += distance(run.begin, run.end);
  end_ = run.end;
}

void OffsetSetBuilder::close_leaf() {
  if (leaf_bytes_ == 0) return;
  leaves_.push_back(open_);  // without a node, if there is no memory for it
  OffsetNode* const leaf = make_leaf(leaf_bytes_);
  leaves_.back().node = leaf;
  std::memcpy(leaf_bytes(*leaf), leaf_.data(), leaf_bytes_);
  bytes_ += heap_bytes(0, leaf->capacity);
  open_ = {};
  leaf_bytes_ = 0;
}

/// Puts the leaves below inner nodes of about equal size, level by level.
OffsetSet OffsetSetBuilder::finish() {
  encode(std::exchange(pending_, {}));
  close_leaf();
  end_ = {};
  OffsetSet set;
  BuiltLevel below(std::exchange(leaves_, {}), 0);
  while (below.trees.size() > 1) {
    const std::size_t count = below.trees.size();
    const std::size_t nodes = (count + offset_node_entries_max - 1) / offset_node_entries_max;
    BuiltLevel above({}, below.level + 1);
    above.trees.reserve(nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::size_t first = count * i / nodes;
      const std::size_t end = count * (i + 1) / nodes;
      OffsetTree node{below.trees[first].begin, 0, make_inner(end - first)};
      for (std::size_t at = first; at != end; ++at) {
        node.messages += below.trees[at].messages;
        entries_of(*node.node)[at - first] = std::exchange(below.trees[at], {});
      }
      bytes_ += heap_bytes(above.level, node.node->capacity);
      above.trees.push_back(node);
    }
    std::swap(below.trees, above.trees);
    std::swap(below.level, above.level);
  }
  set.bytes_ = std::exchange(bytes_, 0);
  if (!below.trees.empty()) set.root_ = std::exchange(below.trees.front(), {});
  set.levels_ = static_cast<std::uint16_t>(below.level);
  return set;
}

}  // namespace lightq::log
