/// Reads sets of offsets, and passes changes to OffsetTreeEdit. Layer: log.
#include "log/offsets/offset_set.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "log/offsets/offset_tree_edit.hpp"

namespace lightq::log {

// --- Copies ---

OffsetSet::OffsetSet(const OffsetSet& other)
    : root_(other.root_), bytes_(other.bytes_), last_(other.last_), levels_(other.levels_) {
  if (root_.node != nullptr) retain(*root_.node);
}

OffsetSet::OffsetSet(OffsetSet&& other) noexcept
    : root_(std::exchange(other.root_, {})),
      bytes_(std::exchange(other.bytes_, 0)),
      last_(std::exchange(other.last_, {})),
      levels_(std::exchange(other.levels_, std::uint16_t{0})) {}

OffsetSet& OffsetSet::operator=(const OffsetSet& other) {
  OffsetSet copy = other;
  return *this = std::move(copy);
}

OffsetSet& OffsetSet::operator=(OffsetSet&& other) noexcept {
  std::swap(root_, other.root_);
  std::swap(bytes_, other.bytes_);
  std::swap(last_, other.last_);
  std::swap(levels_, other.levels_);
  if (this != &other) other.clear();
  return *this;
}

OffsetSet::~OffsetSet() {
  clear();
}

void OffsetSet::clear() {
  if (root_.node != nullptr) release(*root_.node, levels_);
  root_ = {};
  bytes_ = 0;
  last_ = {};
  levels_ = 0;
}

// --- Reading ---

bool OffsetSet::contains(Offset offset) const {
  const auto run = first_behind(offset);
  return run && run->begin <= offset;
}

std::optional<OffsetRange> OffsetSet::first_behind(Offset offset) const {
  if (offset.value == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  return find_run(offset + 1);
}

std::optional<OffsetRange> OffsetSet::find_run(Offset end_min) const {
  if (empty()) return std::nullopt;
  if (is_last_known() && last_.run.begin < end_min) {
    if (last_.run.end < end_min) return std::nullopt;
    return last_.run;
  }
  const OffsetNode* node = root_.node;
  Offset begin = root_.begin;
  std::optional<Offset> behind;  // the begin of the next leaf
  for (std::size_t level = levels_; level != 0; --level) {
    const auto entries = entries_of(*node);
    const std::size_t at = entry_at(*node, end_min);
    if (at + 1 < entries.size()) behind = entries[at + 1].begin;
    begin = entries[at].begin;
    node = entries[at].node;
  }
  const std::byte* at = leaf_bytes(*node);
  const std::byte* const end = at + node->used;
  for (OffsetRange run{begin, begin}; at != end;) {
    run = load_run(at, run.end);
    if (end_min <= run.end) return run;
  }
  if (!behind) return std::nullopt;
  return find_run(*behind + 1);  // the first run of the next leaf
}

Offset OffsetSet::end() const {
  assert(!empty());
  if (is_last_known()) return last_.run.end;
  OffsetTree tree = root_;
  for (std::size_t level = levels_; level != 0; --level) tree = entries_of(std::as_const(*tree.node)).back();
  const std::byte* at = leaf_bytes(std::as_const(*tree.node));
  const std::byte* const end = at + tree.node->used;
  OffsetRange run{tree.begin, tree.begin};
  while (at != end) run = load_run(at, run.end);
  return run.end;
}

std::uint64_t OffsetSet::count_in(OffsetRange range) const {
  if (range.end <= range.begin || empty() || range.end <= first()) return 0;
  return count_below(range.end) - count_below(range.begin);
}

std::uint64_t OffsetSet::count_below(Offset offset) const {
  if (empty() || offset <= first()) return 0;
  if (is_last_known() && last_.run.end <= offset) return size();
  std::uint64_t messages = 0;
  OffsetTree tree = root_;
  for (std::size_t level = levels_; level != 0; --level) {
    const auto entries = entries_of(std::as_const(*tree.node));
    const std::size_t at = entry_at(*tree.node, offset);
    for (const OffsetTree& before : entries.first(at)) messages += before.messages;
    tree = entries[at];
  }
  const std::byte* at = leaf_bytes(std::as_const(*tree.node));
  const std::byte* const end = at + tree.node->used;
  for (OffsetRange run{tree.begin, tree.begin}; at != end;) {
    run = load_run(at, run.end);
    if (offset <= run.begin) break;
    messages += distance(run.begin, std::min(run.end, offset));
  }
  return messages;
}

// --- Changing ---

void OffsetSet::add(OffsetRange range) {
  if (range.end <= range.begin) return;
  OffsetRange put = range;
  // The run that reaches the begin, and the one that reaches the end, become part of the new run.
  if (const auto before = find_run(range.begin); before && before->begin <= range.begin) {
    if (range.end <= before->end) return;
    put.begin = before->begin;
  }
  if (const auto behind = find_run(range.end); behind && behind->begin <= range.end) put.end = behind->end;
  OffsetTreeEdit(*this).put(put);
}

void OffsetSet::remove_parts(OffsetRange range, RemovedSink removed) {
  if (range.end <= range.begin) return;
  const auto first = first_behind(range.begin);
  if (first && first->begin < range.end) OffsetTreeEdit(*this).cut(range, removed);
}

// --- Comparing ---

bool operator==(const OffsetSet& left, const OffsetSet& right) {
  if (left.shares_all_with(right)) return true;
  if (left.size() != right.size() || left.root_.begin != right.root_.begin) return false;
  OffsetSet::Runs of_left(left);
  OffsetSet::Runs of_right(right);
  for (;;) {
    const bool more = of_left.at_ != of_left.leaf_end_ || of_left.next_leaf();
    const bool other_more = of_right.at_ != of_right.leaf_end_ || of_right.next_leaf();
    if (!more || !other_more) return more == other_more;
    if (of_left.leaf_ != nullptr && of_left.leaf_ == of_right.leaf_) {
      of_left.at_ = of_left.leaf_end_;
      of_right.at_ = of_right.leaf_end_;
    } else if (of_left.next() != of_right.next()) {
      return false;
    }
  }
}

// --- Runs ---

OffsetSet::Runs::Runs(const OffsetSet& set) : levels_(set.levels_) {
  assert(levels_ <= levels_max);
  if (!set.empty()) enter(set.root_, levels_);
}

void OffsetSet::Runs::enter(const OffsetTree& tree, std::size_t level) {
  OffsetTree below = tree;
  for (; level != 0; --level) {
    above_[level - 1] = {below.node, 1};
    below = entries_of(std::as_const(*below.node)).front();
  }
  leaf_ = below.node;
  at_ = leaf_bytes(*leaf_);
  leaf_end_ = at_ + leaf_->used;
  before_ = below.begin;
}

bool OffsetSet::Runs::next_leaf() {
  for (std::size_t level = 1; level <= levels_; ++level) {
    Step& step = above_[level - 1];
    if (step.node == nullptr || step.next == step.node->used) continue;
    enter(entries_of(*step.node)[step.next++], level - 1);
    return true;
  }
  return false;
}

std::optional<OffsetRange> OffsetSet::Runs::next() {
  if (at_ == leaf_end_ && !next_leaf()) return std::nullopt;
  leaf_ = nullptr;
  const OffsetRange run = load_run(at_, before_);
  before_ = run.end;
  return run;
}

}  // namespace lightq::log
