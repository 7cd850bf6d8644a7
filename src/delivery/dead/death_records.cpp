/// Adds and removes records of dead messages. Layer: delivery.
#include "delivery/dead/death_records.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "admission/turn_work.hpp"

namespace lightq::broker {

DeathRecords::DeathRecords(const DeathRecords& other)
    : slots_(other.slots_), size_(other.size_), reason_bytes_(other.reason_bytes_), copies_(++other.copies_) {
  TurnWork::add(TurnWork::range_passed * slots_.size());
}

/// Returns the index of the first piece that ends at `offset` or later.
std::size_t DeathRecords::slot_of(Offset offset) const {
  const auto found = std::ranges::lower_bound(slots_, offset, {},
                                              [](const Slot& slot) { return slot.piece->back().offset; });
  return static_cast<std::size_t>(found - slots_.begin());
}

/// Returns a piece to change it. Copies it if another object may share it.
DeathRecords::Piece& DeathRecords::own(std::size_t at) {
  Slot& slot = slots_[at];
  if (slot.made != copies_) {
    TurnWork::add(TurnWork::record_passed * slot.piece->size());
    slot = {std::make_shared<Piece>(*slot.piece), copies_};
  }
  return *slot.piece;
}

const DeathRecord* DeathRecords::find(Offset offset) const {
  const std::size_t at = slot_of(offset);
  if (at == slots_.size()) return nullptr;
  const Piece& piece = *slots_[at].piece;
  const auto found = std::ranges::lower_bound(piece, offset, {}, &Entry::offset);
  return found->offset == offset ? found->record.get() : nullptr;
}

void DeathRecords::add(Offset offset, Record record) {
  if (find(offset) != nullptr) return;
  ++size_;
  reason_bytes_ += record->reason.size();
  const std::size_t last = slots_.empty() ? 0 : slots_.size() - 1;
  const std::size_t at = std::min(slot_of(offset), last);
  if (slots_.empty()) slots_.push_back({std::make_shared<Piece>(), copies_});
  Piece& piece = own(at);
  const auto place = std::ranges::lower_bound(piece, offset, {}, &Entry::offset);
  const bool at_end = place == piece.end();
  piece.insert(place, {offset, std::move(record)});
  if (piece.size() > piece_records_max) split(at, at_end);
}

/// Splits a piece in halves, or moves its last record into a piece of its own, because more may follow it.
void DeathRecords::split(std::size_t at, bool at_end) {
  Piece& piece = own(at);
  const std::size_t kept = at_end ? piece.size() - 1 : piece.size() / 2;
  const auto moved = piece.begin() + static_cast<std::ptrdiff_t>(kept);
  auto upper = std::make_shared<Piece>(std::make_move_iterator(moved), std::make_move_iterator(piece.end()));
  piece.erase(moved, piece.end());
  slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(at) + 1, {std::move(upper), copies_});
}

std::size_t DeathRecords::remove(OffsetRange range) {
  const std::size_t before = size_;
  const std::size_t first = slot_of(range.begin);
  std::size_t at = first;
  while (at < slots_.size() && slots_[at].piece->front().offset < range.end) {
    const Piece& present = *slots_[at].piece;
    const auto begin = std::ranges::lower_bound(present, range.begin, {}, &Entry::offset) - present.begin();
    const auto end = std::ranges::lower_bound(present, range.end, {}, &Entry::offset) - present.begin();
    for (auto each = present.begin() + begin; each != present.begin() + end; ++each)
      reason_bytes_ -= each->record->reason.size();
    size_ -= static_cast<std::size_t>(end - begin);
    if (static_cast<std::size_t>(end - begin) == present.size()) {
      slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    if (begin != end) {
      Piece& piece = own(at);
      piece.erase(piece.begin() + begin, piece.begin() + end);
    }
    ++at;
  }
  if (size_ == before) return 0;
  // At most two pieces are left of those that were changed. Each may be merged with its neighbours.
  for (std::size_t from = std::min(at + 1, slots_.size()); from-- > (first == 0 ? 0 : first - 1);)
    merge(from);
  return before - size_;
}

/// Merges a piece with the one behind it if both are short.
void DeathRecords::merge(std::size_t at) {
  if (at + 1 >= slots_.size()) return;
  if (slots_[at].piece->size() + slots_[at + 1].piece->size() > merged_max) return;
  Piece& piece = own(at);
  piece.insert(piece.end(), slots_[at + 1].piece->begin(), slots_[at + 1].piece->end());
  slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

void DeathRecords::clear() {
  slots_.clear();
  size_ = 0;
  reason_bytes_ = 0;
}

}  // namespace lightq::broker
