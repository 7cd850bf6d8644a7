/// What readers on other threads see of a segment. Layer: log.
#include "log/segment_node.hpp"

#include <algorithm>
#include <utility>

namespace lightq::log {

SegmentView::SegmentView(std::shared_ptr<SegmentNode> node, std::shared_ptr<const void> mapping,
                         const std::byte* data, std::size_t bytes,
                         std::shared_ptr<std::atomic<std::uint64_t>> counted)
    : node_(std::move(node)),
      mapping_(std::move(mapping)),
      data_(data),
      bytes_(bytes),
      counted_(std::move(counted)) {
  if (counted_) counted_->fetch_add(bytes_, std::memory_order_relaxed);
}

SegmentView::~SegmentView() {
  if (counted_) counted_->fetch_sub(bytes_, std::memory_order_relaxed);
}

// A long chain that a slow reader held goes link by link, not by recursion.
SegmentNode::~SegmentNode() {
  std::shared_ptr<SegmentNode> next = std::move(next_);
  while (next != nullptr && next.use_count() == 1) {
    std::shared_ptr<SegmentNode> after = std::move(next->next_);
    next = std::move(after);
  }
}

Result<std::shared_ptr<const SegmentView>> SegmentViews::view(const std::shared_ptr<SegmentNode>& node) {
  const std::lock_guard lock(mutex_);
  if (auto known = node->view_.lock()) {
    keep(known, *node);
    return known;
  }
  std::shared_ptr<const SegmentView> made;
  if (auto writable = node->writable_.lock()) {
    const std::byte* data = writable->data();
    made = std::make_shared<SegmentView>(node, std::move(writable), data, node->usable_bytes(), nullptr);
    node->view_ = made;
    return made;  // kept by the writer as long as that needs it
  } else {
    auto file = storage_.open(node->path(), OpenMode::read_only);
    if (!file) return file.error();
    auto mapped = (*file)->map(node->usable_bytes());
    if (!mapped) return mapped.error();
    std::shared_ptr<const Mapping> mapping = std::move(*mapped);
    const std::byte* data = mapping->data();
    made = std::make_shared<SegmentView>(node, std::move(mapping), data, node->usable_bytes(), mapped_bytes_);
  }
  node->view_ = made;
  keep(made, *node);
  return made;
}

// Drops the least recently used until the cap holds; of those a reader still has, the reader's share stays.
void SegmentViews::keep(const std::shared_ptr<const SegmentView>& view, const SegmentNode& node) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.node == &node; });
  if (found == kept_.end()) {
    kept_.push_front({&node, view});
  } else {
    kept_.splice(kept_.begin(), kept_, found);
  }
  while (bytes_max_ != 0 && kept_.size() > 1 && mapped_bytes() > bytes_max_) kept_.pop_back();
}

void SegmentViews::forget(const SegmentNode& node) {
  const std::lock_guard lock(mutex_);
  kept_.remove_if([&](const Kept& kept) { return kept.node == &node; });
}

std::shared_ptr<WritableMapping> SegmentViews::counted(std::shared_ptr<WritableMapping> mapping) {
  WritableMapping* const raw = mapping.get();
  const std::size_t bytes = raw->size();
  mapped_bytes_->fetch_add(bytes, std::memory_order_relaxed);
  return {raw, [mapping = std::move(mapping), counter = mapped_bytes_, bytes](WritableMapping*) mutable {
            mapping.reset();
            counter->fetch_sub(bytes, std::memory_order_relaxed);
          }};
}

}  // namespace lightq::log
