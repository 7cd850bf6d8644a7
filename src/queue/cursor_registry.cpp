/// Knows the cursors of an open queue. Layer: queue.
#include "queue/cursor_registry.hpp"

#include <algorithm>
#include <utility>

namespace lightq::queue {

void CursorRegistry::adopt(std::unique_ptr<log::CursorTable> table) {
  table_ = std::move(table);
  is_damaged_ = !table_->damaged().empty();
  for (const log::ListedCursor& listed : table_->list()) {
    const auto cursor = table_->find(listed.name);
    if (cursor && *cursor != nullptr) cursors_.push_back(*cursor);
  }
}

// Removes one entry only: another cursor may already have the same slot of the table.
void CursorRegistry::note_removed(const log::TableCursor* cursor) {
  const auto known = std::find(cursors_.begin(), cursors_.end(), cursor);
  if (known != cursors_.end()) cursors_.erase(known);
  is_damaged_ = !table_->damaged().empty();
}

std::optional<Offset> CursorRegistry::committed_by_all() const {
  std::optional<Offset> least;
  // A damaged cursor, or one being made, has no known position, so nothing may be dropped.
  if (is_damaged_ || being_made_ != 0) least = Offset{0};
  for (const log::TableCursor* cursor : cursors_) {
    least = std::min(least.value_or(cursor->committed()), cursor->committed());
  }
  return least;
}

}  // namespace lightq::queue
