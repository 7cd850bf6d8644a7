/// Allocates and frees the nodes of offset sets. Layer: log.
#include "log/offsets/offset_node.hpp"

#include <cassert>
#include <new>
#include <utility>

namespace lightq::log {

namespace {

OffsetNode* make_offset_node(std::size_t bytes, std::size_t used, std::size_t capacity) {
  auto* const node = new (::operator new(sizeof(OffsetNode) + bytes)) OffsetNode;
  node->used = static_cast<std::uint16_t>(used);
  node->capacity = static_cast<std::uint16_t>(capacity);
  return node;
}

}  // namespace

OffsetNode* make_leaf(std::size_t used) {
  assert(used <= offset_leaf_bytes_max);
  const std::size_t capacity = leaf_capacity(used);
  return make_offset_node(capacity, used, capacity);
}

OffsetNode* make_inner(std::size_t used) {
  assert(used <= offset_node_entries_max);
  const std::size_t capacity = inner_capacity(used);
  OffsetNode* const node = make_offset_node(capacity * sizeof(OffsetTree), used, capacity);
  for (std::size_t i = 0; i < capacity; ++i) new (entries_of(*node) + i) OffsetTree;
  return node;
}

std::size_t heap_bytes_below(const OffsetNode& node, std::size_t level) {
  std::size_t bytes = heap_bytes(level, node.capacity);
  if (level == 0) return bytes;
  for (const OffsetTree& entry : entries_of(node)) bytes += heap_bytes_below(*entry.node, level - 1);
  return bytes;
}

void release(OffsetNode& node, std::size_t level) {
  if (node.uses.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (level != 0) {
    for (const OffsetTree& entry : entries_of(std::as_const(node))) {
      if (entry.node != nullptr) release(*entry.node, level - 1);
    }
  }
  node.~OffsetNode();
  ::operator delete(&node);
}

}  // namespace lightq::log
