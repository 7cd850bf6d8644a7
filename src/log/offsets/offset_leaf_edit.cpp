/// Changes the leaves of an offset set. Layer: log.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "log/offsets/offset_tree_edit.hpp"

namespace lightq::log {

void OffsetTreeEdit::edit_leaf(OffsetTree& tree, bool is_last) {
  const Splice splice = splice_of(tree, start_in(tree, is_last));
  if (splice.removed == 0 && !put_) return;
  const std::size_t used_before = tree.node->used;
  tree.messages -= splice.removed;
  if (put_) tree.messages += distance(put_->begin, put_->end);
  const Codes codes = encode(splice);
  const std::size_t used = splice.from + codes.size + (used_before - splice.to);
  if (used == 0) {
    set_.last_.at = OffsetSet::LastRun::unknown;
    set_.bytes_ -= heap_bytes(0, tree.node->capacity);
    release(*tree.node, 0);
    tree = {};
    return;
  }
  if (splice.from == 0) tree.begin = splice.runs[0].begin;
  if (used > offset_leaf_bytes_max) return split_leaf(tree, splice, codes, is_last);
  replace(tree, splice, codes);
  if (is_last) note_last(splice, codes, used_before);
}

/// Returns the place at which the search for cut_ begins.
OffsetTreeEdit::Place OffsetTreeEdit::start_in(const OffsetTree& tree, bool is_last) const {
  const OffsetSet::LastRun& last = set_.last_;
  if (!is_last || !set_.is_last_known() || cut_.begin < last.run.begin) return {0, tree.begin};
  const std::byte* code = leaf_bytes(std::as_const(*tree.node)) + last.at;
  const std::uint64_t gap = load_run(code, Offset{0}).begin.value;
  return {last.at, {last.run.begin.value - gap}};
}

OffsetTreeEdit::Splice OffsetTreeEdit::splice_of(const OffsetTree& tree, Place place) {
  const std::byte* const bytes = leaf_bytes(std::as_const(*tree.node));
  const std::byte* const end = bytes + tree.node->used;
  const std::byte* at = bytes + place.at;
  const std::byte* from = at;
  OffsetRange run{place.before, place.before};
  Splice splice;
  splice.before = place.before;
  bool found = false;
  while (at != end && !found) {
    from = at;
    splice.before = run.end;
    run = load_run(at, run.end);
    found = cut_.begin < run.end;
  }
  if (!found) {
    from = at;
    splice.before = run.end;
  }
  const std::byte* to = from;
  if (found && run.begin < cut_.begin) splice.add({run.begin, cut_.begin});
  if (put_) splice.add(*put_);
  while (found && run.begin < cut_.end) {
    const OffsetRange part{std::max(run.begin, cut_.begin), std::min(run.end, cut_.end)};
    splice.removed += distance(part.begin, part.end);
    if (removed_.call != nullptr) removed_.call(removed_.context, part);
    if (cut_.end < run.end) splice.add({cut_.end, run.end});
    to = at;
    found = at != end;
    if (found) run = load_run(at, run.end);
  }
  if (found) {  // the gap before the next run has changed
    splice.add(run);
    to = at;
  }
  splice.from = static_cast<std::size_t>(from - bytes);
  splice.to = static_cast<std::size_t>(to - bytes);
  return splice;
}

OffsetTreeEdit::Codes OffsetTreeEdit::encode(const Splice& splice) {
  Codes codes;
  // The first run of a leaf has no gap, because the leaf begins with it.
  Offset before = splice.from == 0 ? splice.runs[0].begin : splice.before;
  std::byte* to = codes.bytes.data();
  for (std::size_t i = 0; i < splice.run_count; ++i) {
    codes.last_at = static_cast<std::size_t>(to - codes.bytes.data());
    to = store_run(to, before, splice.runs[i]);
    before = splice.runs[i].end;
  }
  codes.size = static_cast<std::size_t>(to - codes.bytes.data());
  return codes;
}

void OffsetTreeEdit::replace(OffsetTree& leaf, const Splice& splice, const Codes& codes) {
  const std::size_t behind = leaf.node->used - splice.to;
  const std::size_t used = splice.from + codes.size + behind;
  if (leaf.node->capacity < used) fit_leaf(leaf, used);
  std::byte* const bytes = leaf_bytes(*leaf.node);
  std::memmove(bytes + splice.from + codes.size, bytes + splice.to, behind);
  std::memcpy(bytes + splice.from, codes.bytes.data(), codes.size);
  leaf.node->used = static_cast<std::uint16_t>(used);
  fit_leaf(leaf, used);
}

/// Moves about half of the codes of a leaf that grows too large into `split_`. If runs are appended to the
/// set, the left part stays full. Requires: `leaf` has the new begin and number of messages.
void OffsetTreeEdit::split_leaf(OffsetTree& leaf, const Splice& splice, const Codes& codes, bool is_last) {
  std::array<std::byte, offset_leaf_bytes_max + sizeof codes.bytes> all{};
  std::byte* const old = leaf_bytes(*leaf.node);
  const bool is_appended = is_last && splice.to == leaf.node->used;
  std::byte* end = std::copy_n(old, splice.from, all.data());
  const std::byte* const last = end + codes.last_at;
  end = std::copy_n(codes.bytes.data(), codes.size, end);
  end = std::copy_n(old + splice.to, leaf.node->used - splice.to, end);
  const std::byte* wanted = all.data() + (end - all.data()) / 2;
  if (is_appended && last <= all.data() + offset_leaf_bytes_max) wanted = last;

  const std::byte* at = all.data();
  OffsetRange run{leaf.begin, leaf.begin};
  std::uint64_t messages = 0;
  while (at < wanted) {
    run = load_run(at, run.end);
    messages += distance(run.begin, run.end);
  }
  const auto left = static_cast<std::size_t>(at - all.data());
  const OffsetRange first = load_run(at, run.end);
  std::array<std::byte, run_code_bytes_max> code{};
  const auto code_size = static_cast<std::size_t>(store_run(code.data(), first.begin, first) - code.data());
  const auto behind = static_cast<std::size_t>(end - at);

  const OffsetTree right{first.begin, leaf.messages - messages, make_leaf(code_size + behind)};
  split_ = OwnedTree(right, 0);
  std::memcpy(leaf_bytes(*right.node), code.data(), code_size);
  std::memcpy(leaf_bytes(*right.node) + code_size, at, behind);
  set_.bytes_ += heap_bytes(0, right.node->capacity);
  leaf.messages = messages;
  if (leaf.node->capacity < left) fit_leaf(leaf, left);
  std::memcpy(leaf_bytes(*leaf.node), all.data(), left);
  leaf.node->used = static_cast<std::uint16_t>(left);
  fit_leaf(leaf, left);
  if (!is_last) return;
  set_.last_ = {first, behind == 0 ? std::uint16_t{0} : OffsetSet::LastRun::unknown};
}

/// Updates the place of the set's last run after a change of the last leaf, which had `used_before` bytes.
void OffsetTreeEdit::note_last(const Splice& splice, const Codes& codes, std::size_t used_before) {
  OffsetSet::LastRun& last = set_.last_;
  if (splice.to != used_before) {
    const std::size_t moved = codes.size - (splice.to - splice.from);  // may wrap around, and so does the sum
    if (set_.is_last_known()) last.at = static_cast<std::uint16_t>(last.at + moved);
  } else if (splice.run_count != 0) {
    last = {splice.runs[splice.run_count - 1], static_cast<std::uint16_t>(splice.from + codes.last_at)};
  } else {
    last.at = OffsetSet::LastRun::unknown;
  }
}

void OffsetTreeEdit::join_leaves(OffsetTree& left, OffsetTree& right) {
  const std::byte* at = leaf_bytes(std::as_const(*left.node));
  const std::byte* const left_end = at + left.node->used;
  OffsetRange run{left.begin, left.begin};
  while (at != left_end) run = load_run(at, run.end);
  const std::byte* const bytes = leaf_bytes(std::as_const(*right.node));
  at = bytes;
  const OffsetRange first = load_run(at, right.begin);
  std::array<std::byte, run_code_bytes_max> code{};
  const auto code_size = static_cast<std::size_t>(store_run(code.data(), run.end, first) - code.data());
  const std::size_t behind = right.node->used - static_cast<std::size_t>(at - bytes);

  const std::size_t used = left.node->used;
  fit_leaf(left, used + code_size + behind);
  std::byte* const to = leaf_bytes(*left.node) + used;
  std::memcpy(to, code.data(), code_size);
  std::memcpy(to + code_size, at, behind);
  left.node->used = static_cast<std::uint16_t>(used + code_size + behind);
  left.messages += right.messages;
  set_.last_.at = OffsetSet::LastRun::unknown;
  set_.bytes_ -= heap_bytes(0, right.node->capacity);
  release(*right.node, 0);
}

/// Changes the capacity of a leaf if `used` needs more, or much less. Requires: the leaf is owned.
void OffsetTreeEdit::fit_leaf(OffsetTree& leaf, std::size_t used) {
  OffsetNode& before = *leaf.node;
  const std::size_t capacity = leaf_capacity(used);
  const bool is_roomy =
      capacity + 64 < before.capacity || (before.capacity <= 64 && capacity * 2 < before.capacity);
  if (capacity <= before.capacity && !is_roomy) return;
  OffsetNode* const after = make_leaf(used);
  const std::size_t kept = std::min<std::size_t>(used, before.used);
  std::memcpy(leaf_bytes(*after), leaf_bytes(before), kept);
  after->used = static_cast<std::uint16_t>(kept);
  set_.bytes_ += heap_bytes(0, after->capacity);
  set_.bytes_ -= heap_bytes(0, before.capacity);
  release(before, 0);
  leaf.node = after;
}

}  // namespace lightq::log
