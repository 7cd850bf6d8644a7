/// Finds the batches of one segment. Layer: log.
#include "log/segment/segment_finder.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lightq::log {

namespace {

constexpr std::uint64_t check_window_bytes = 256 * limits::KiB;

}  // namespace

void SegmentFinder::note_damage(const SegmentDamage& damage) {
  damages_.push_back(damage);
  index_damage(damage);
  // The bytes in the damage are never read: reading continues behind it.
  trusted_.add(damage.begin, damage.end);
}

void SegmentFinder::set_unreadable(const SegmentDamage& all) {
  damages_ = {all};
  trusted_.add(all.begin, all.end);
}

void SegmentFinder::index_damage(const SegmentDamage& damage) {
  if (damage.begin != indexed_.position || has_jumped_) return;
  indexed_ = {damage.end, damage.next};
}

SegmentScanner SegmentFinder::new_scanner() const {
  return {*bytes_.file(), BatchMarks::of(header_), end_.position, check_window_bytes};
}

// One step of a walk: the batch or the damage at a position.
struct SegmentFinder::Step {
  bool damaged = false;
  bool unavailable = false;  // damaged, as far as it could be read
  SegmentDamage damage;
  Offset end;
  std::uint64_t next_position = 0;
  Timestamp time;  // of the batch
};

// Damage of zero length lies before a sound batch; once it is passed, `expected` is higher.
const SegmentDamage* SegmentFinder::damage_at(std::uint64_t position, Offset expected) const {
  const auto found = std::find_if(damages_.begin(), damages_.end(), [&](const SegmentDamage& damage) {
    return damage.begin == position && damage.first == expected;
  });
  return found == damages_.end() ? nullptr : &*found;
}

Located SegmentFinder::locate(Offset offset, std::uint64_t from) {
  assert(header_.first_offset <= offset && offset < end_.offset && bytes_.is_readable());
  SegmentScanner scan = new_scanner();
  std::uint64_t position = segment_header_bytes;
  Offset expected = header_.first_offset;
  if (from != 0) {
    position = from;
    expected = batch_at(from).base_offset();
  } else if (const auto* entry = index_.find(offset)) {
    position = entry->position;
    expected = entry->offset;
  }
  for (;;) {
    const Step step = step_at(position, expected, offset, scan);
    if (offset < step.end) {
      if (step.damaged) return {false, 0, step.damage, step.unavailable};
      return {true, position, {}};
    }
    expected = step.end;
    position = step.next_position;
  }
}

SegmentFinder::Step SegmentFinder::step_at(std::uint64_t position, Offset expected, Offset wanted,
                                           SegmentScanner& scanner) {
  if (!damages_.empty()) {
    if (const auto* damage = damage_at(position, expected))
      return {true, false, *damage, damage->next, damage->end, {}};
  }
  if (trusted_.contain(position)) {
    const BatchView batch = batch_at(position);
    const std::uint64_t end = position + batch.total_bytes();
    index_batch({position, batch.total_bytes(), expected, batch.end_offset(), batch.append_time(), 0, 0});
    return {false, false, {}, batch.end_offset(), end, batch.append_time()};
  }
  // Checks the bodies only of wanted batches; the others are checked when they are read.
  auto batch = scanner.header_at(position);
  if (batch && wanted < batch->end) batch = scanner.batch_at(position);
  if (batch && batch->base == expected) {
    index_batch(*batch);
    if (wanted < batch->end) {
      trusted_.add(position, batch->end_position());
      check_ahead(batch->end_position(), batch->end, scanner);
    }
    return {false, false, {}, batch->end, batch->end_position(), batch->time};
  }
  const SegmentDamage damage = find_damage(position, expected, scanner);
  // Unreadable bytes are not recorded as damage, so that the next call reads them again.
  const bool unreadable =
      scanner.unreadable(damage.begin, std::max(damage.end, damage.begin + 1)).has_value();
  if (unreadable) read_error_ = *scanner.read_error();
  if (scanner.newer()) read_error_ = scanner.newer()->error(bytes_.path());
  const bool unavailable = unreadable || scanner.newer();
  if (!unavailable) damages_.push_back(damage);
  return {true, unavailable, damage, damage.next, damage.end, {}};
}

// Checks the other batches that the scanner's window already contains, for readers that continue.
void SegmentFinder::check_ahead(std::uint64_t position, Offset expected, SegmentScanner& scanner) {
  const std::uint64_t until = scanner.window_end();
  while (position < until && !trusted_.contain(position)) {
    const auto header = scanner.header_at(position);
    if (!header || header->base != expected || until < header->end_position()) return;
    if (!scanner.batch_at(position)) return;
    trusted_.add(position, header->end_position());
    index_batch(*header);
    position = header->end_position();
    expected = header->end;
  }
}

std::optional<Offset> SegmentFinder::first_since(Timestamp time, std::uint64_t& passed, bool& unavailable) {
  assert(bytes_.is_readable());
  SegmentScanner scan = new_scanner();
  const bool is_indexed = index_rest(scan, passed);
  const auto entries = index_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].newest < time) continue;
    const std::uint64_t end = i + 1 < entries.size() ? entries[i + 1].position : end_.position;
    std::uint64_t position = entries[i].position;
    for (Offset expected = entries[i].offset; position < end && expected < end_.offset; ++passed) {
      const Step step = step_at(position, expected, offset_not_yet_known, scan);
      unavailable = step.unavailable;
      if (unavailable || (!step.damaged && time <= step.time)) return expected;
      position = step.next_position;
      expected = step.end;
    }
  }
  unavailable = !is_indexed;
  return is_indexed ? std::nullopt : std::optional(indexed_.offset);
}

// Continues the index to the segment's end without reading bodies. Returns false if a part cannot be read
// now.
bool SegmentFinder::index_rest(SegmentScanner& scanner, std::uint64_t& passed) {
  if (std::exchange(has_jumped_, false)) index_.drop_from(indexed_.position);
  while (indexed_.offset < end_.offset && indexed_.position < end_.position) {
    const Step step = step_at(indexed_.position, indexed_.offset, offset_not_yet_known, scanner);
    if (step.unavailable) return false;
    if (step.damaged) index_damage(step.damage);
    ++passed;
  }
  return true;
}

SegmentDamage SegmentFinder::find_damage(std::uint64_t position, Offset expected, SegmentScanner& scanner) {
  const auto next = scanner.resume_at(position, expected);
  if (!next || end_.offset < next->end) return {position, end_.position, expected, end_.offset};
  return {position, next->position, expected, next->base};
}

}  // namespace lightq::log
