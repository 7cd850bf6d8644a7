/// Appends to one segment file of a log and finds batches in it. Layer: log.
#include "log/segment_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

namespace lightq::log {

namespace {

constexpr std::size_t trusted_ranges_max = 8;
constexpr std::uint64_t check_window_bytes = 256 * limits::KiB;
constexpr std::uint64_t piece_bytes_min = 16 * limits::KiB;
constexpr std::uint64_t piece_bytes_max = 128 * limits::KiB;

}  // namespace

SegmentFile::SegmentFile(std::string path, const SegmentHeader& header, std::uint64_t usable_bytes,
                         std::shared_ptr<File> file)
    : path_(std::move(path)),
      header_(header),
      usable_bytes_(usable_bytes),
      file_(std::move(file)),
      end_offset_(header.first_offset),
      indexed_end_offset_(header.first_offset),
      checkpoint_(first_checkpoint(header)) {
  synced_point = seal();
  synced_point.end_position = segment_header_bytes;
}

Result<void> SegmentFile::append(const BatchView& batch) {
  assert(!sealed && batch.base_offset() == end_offset_ && has_room(batch.total_bytes()));
  Result<void> written;
  if (writable_ != nullptr) {
    std::memcpy(writable_->data() + end_position_, batch.bytes().data(), batch.total_bytes());
  } else {
    begin_piece(end_position_ + batch.total_bytes());
    written = write_all(*file_, batch.bytes(), end_position_);
  }
  if (!written) return written;
  append_in_place(batch);
  return {};
}

// Fills the piece around the next end of a new file with zeros, which change nothing. The system keeps the
// bytes of one write call together in memory. In large pieces, later writes are cheaper, now and whenever the
// file is recycled; small pieces would stay as small as the first batches. A piece is as large as the data
// before it, so that a log of a few messages takes little memory. An error here has no consequence and is
// ignored.
void SegmentFile::begin_piece(std::uint64_t end) {
  if (end <= new_from) return;
  static constexpr std::array<std::byte, piece_bytes_max> zeros{};
  const std::uint64_t piece = std::min(std::bit_floor(end), piece_bytes_max);
  const std::uint64_t begin = std::max({new_from, end_position_, end / piece * piece});
  new_from = std::min((end + piece - 1) / piece * piece, usable_bytes_);
  if (piece_bytes_min <= piece && begin < end && end < new_from)
    static_cast<void>(write_all(*file_, ByteView(zeros).first(new_from - begin), begin));
}

void SegmentFile::append_in_place(const BatchView& batch) {
  note_batch({end_position_, batch.total_bytes(), batch.base_offset(), batch.end_offset(),
              batch.append_time(), batch.segment_epoch(), header_.batch_mask});
}

std::span<std::byte> SegmentFile::room(std::uint64_t wanted) {
  return {writable_->data() + end_position_, std::min(wanted, usable_bytes_ - end_position_)};
}

void SegmentFile::publish_to(std::shared_ptr<SegmentNode> node) {
  node_ = std::move(node);
  if (writable_ != nullptr) node_->share(writable_);
  node_->publish(end_position_, end_offset_);
}

void SegmentFile::note_batch(const ScannedBatch& batch) {
  trust(batch.position, batch.end_position());
  index_batch(batch);
  end_position_ = batch.end_position();
  end_offset_ = batch.end;
  note_time(batch.time);
  if (node_ == nullptr) return;
  node_->note_batch(batch.base, batch.position, batch.time);
  node_->publish(end_position_, end_offset_);
}

void SegmentFile::index_batch(const ScannedBatch& batch) {
  if (batch.position < indexed_end_) return;
  if (batch.position == indexed_end_ && !has_jumped_) {
    indexed_end_ = batch.end_position();
    indexed_end_offset_ = batch.end;
  } else {
    has_jumped_ = true;
  }
  index_.note(batch.base, batch.position, batch.time);
}

void SegmentFile::index_damage(const SegmentDamage& damage) {
  if (damage.begin != indexed_end_ || has_jumped_) return;
  indexed_end_ = damage.end;
  indexed_end_offset_ = damage.next;
}

void SegmentFile::note_damage(const SegmentDamage& damage) {
  damages_.push_back(damage);
  index_damage(damage);
  // The bytes in the damage are never read: reading continues behind it.
  trust(damage.begin, damage.end);
  checked_from_ = std::max(checked_from_, damage.end);
  if (end_position_ <= damage.begin) {
    end_position_ = damage.end;
    end_offset_ = damage.next;
  }
}

void SegmentFile::set_end(const SegmentSeal& seal) {
  end_position_ = seal.end_position;
  end_offset_ = seal.end_offset;
  note_time(seal.newest);
  checked_from_ = seal.end_position;
  sealed = true;
  seal_written = seal.boot == BootId{};
  synced_position = seal_written ? seal.end_position : 0;
}

void SegmentFile::set_checkpoint(const SegmentCheckpoint& checkpoint, std::uint64_t next_sequence) {
  checkpoint_ = checkpoint;
  checkpoint_.sequence = next_sequence - 1;
  checked_from_ = checkpoint.end_position;
  end_position_ = checkpoint.end_position;
  end_offset_ = checkpoint.end_offset;
  note_time(checkpoint.newest);
  if (checkpoint.boot == BootId{}) synced_point = seal();
}

Result<void> SegmentFile::write_checkpoint(SegmentCheckpoint checkpoint) {
  checkpoint.sequence = checkpoint_.sequence + 1;
  const auto written = write_in_header(encode_segment_checkpoint(checkpoint, header_),
                                       segment_checkpoint_position(checkpoint.sequence));
  if (written) checkpoint_ = checkpoint;
  return written;
}

Result<void> SegmentFile::write_seal(const SegmentSeal& seal) {
  return write_in_header(encode_segment_seal(seal, header_), segment_seal_position);
}

// Uses the mapping if there is one: a system call costs the writer a hundred times as much as the stores.
Result<void> SegmentFile::write_in_header(ByteView bytes, std::size_t position) {
  if (writable_ == nullptr) return write_all(*file_, bytes, position);
  std::memcpy(writable_->data() + position, bytes.data(), bytes.size());
  return {};
}

void SegmentFile::set_unreadable(Offset end) {
  const SegmentDamage all{segment_header_bytes, std::max<std::uint64_t>(usable_bytes_, segment_header_bytes),
                          first_offset(), end};
  damages_ = {all};
  trust(all.begin, all.end);
  end_position_ = all.end;
  checked_from_ = all.end;
  end_offset_ = end;
  written_ = {std::numeric_limits<std::int64_t>::max()};  // unknown
  sealed = true;
  seal_written = true;  // there is nothing to seal, and the file must not be changed
  synced_position = all.end;
}

bool SegmentFile::is_trusted(std::uint64_t position) const {
  return std::any_of(trusted_.begin(), trusted_.end(),
                     [&](const Range& range) { return range.begin <= position && position < range.end; });
}

// An append or a sequential read extends a range. A jump to another position begins a new range, which
// replaces the oldest one.
void SegmentFile::trust(std::uint64_t begin, std::uint64_t end) {
  for (Range& range : trusted_) {
    if (range.end == begin) {
      range.end = end;
      return;
    }
  }
  if (trusted_.size() == trusted_ranges_max) trusted_.erase(trusted_.begin());
  trusted_.push_back({begin, end});
}

Result<void> SegmentFile::open_for_writing(Storage& storage) {
  if (file_ != nullptr) return {};
  auto opened = storage.open(path_, sealed && seal_written ? OpenMode::read_only : OpenMode::read_write);
  if (!opened) return opened.error();
  file_ = std::move(*opened);
  return {};
}

Result<void> SegmentFile::open_mapped(Storage& storage, SegmentViews* views) {
  if (auto opened = open_for_writing(storage); !opened) return opened;
  if (writable_ != nullptr) return {};
  auto mapped = file_->map_writable(usable_bytes_);
  if (!mapped) return mapped.error();
  writable_ = counted_by(views, std::move(*mapped));
  if (node_ != nullptr && views != nullptr) views->share(*node_, writable_);
  return {};
}

// If the file cannot be mapped now, closes the descriptor that was opened for the mapping.
Result<void> SegmentFile::open_for_reading(Storage& storage) {
  if (mapping_ != nullptr) return {};
  const bool was_open = file_ != nullptr;
  if (const auto opened = open_for_writing(storage); !opened) return opened;
  auto mapped = file_->map(usable_bytes_);
  if (!mapped && !was_open) file_.reset();
  if (!mapped) return mapped.error();
  mapping_ = std::move(*mapped);
  return {};
}

void SegmentFile::release() {
  mapping_.reset();
  if (!synced() || (sealed && !seal_written)) {
    if (sealed) static_cast<void>(release_descriptor());
    return;
  }
  writable_.reset();
  file_.reset();
}

// One step of a walk: the batch or the damage at a position.
struct SegmentFile::Step {
  bool damaged = false;
  bool unavailable = false;  // damaged, as far as it could be read
  SegmentDamage damage;
  Offset end;
  std::uint64_t next_position = 0;
  Timestamp time;  // of the batch
};

// Damage of zero length lies before a sound batch; once it is passed, `expected` is higher.
const SegmentDamage* SegmentFile::damage_at(std::uint64_t position, Offset expected) const {
  const auto found = std::find_if(damages_.begin(), damages_.end(), [&](const SegmentDamage& damage) {
    return damage.begin == position && damage.first == expected;
  });
  return found == damages_.end() ? nullptr : &*found;
}

Located SegmentFile::locate(Offset offset, std::uint64_t from) {
  assert(first_offset() <= offset && offset < end_offset_ && is_mapped());
  SegmentScanner scanner(*file_, BatchMarks::of(header_), end_position_, check_window_bytes);
  std::uint64_t position = segment_header_bytes;
  Offset expected = first_offset();
  if (from != 0) {
    position = from;
    expected = batch_at(from).base_offset();
  } else if (const auto* entry = index_.find(offset)) {
    position = entry->position;
    expected = entry->offset;
  }
  for (;;) {
    const Step step = step_at(position, expected, offset, scanner);
    if (offset < step.end) {
      if (step.damaged) return {false, 0, step.damage, step.unavailable};
      return {true, position, {}};
    }
    expected = step.end;
    position = step.next_position;
  }
}

SegmentFile::Step SegmentFile::step_at(std::uint64_t position, Offset expected, Offset wanted,
                                       SegmentScanner& scanner) {
  if (!damages_.empty()) {
    if (const auto* damage = damage_at(position, expected))
      return {true, false, *damage, damage->next, damage->end, {}};
  }
  if (is_trusted(position)) {
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
      trust(position, batch->end_position());
      check_ahead(batch->end_position(), batch->end, scanner);
    }
    return {false, false, {}, batch->end, batch->end_position(), batch->time};
  }
  const SegmentDamage damage = find_damage(position, expected, scanner);
  // Unreadable bytes are not recorded as damage, so that the next call reads them again.
  const bool unreadable =
      scanner.unreadable(damage.begin, std::max(damage.end, damage.begin + 1)).has_value();
  if (unreadable) read_error_ = *scanner.read_error();
  if (scanner.newer()) read_error_ = scanner.newer()->error(path_);
  const bool unavailable = unreadable || scanner.newer();
  if (!unavailable) damages_.push_back(damage);
  return {true, unavailable, damage, damage.next, damage.end, {}};
}

// Checks the other batches that the scanner's window already contains, for readers that continue.
void SegmentFile::check_ahead(std::uint64_t position, Offset expected, SegmentScanner& scanner) {
  const std::uint64_t until = scanner.window_end();
  while (position < until && !is_trusted(position)) {
    const auto header = scanner.header_at(position);
    if (!header || header->base != expected || until < header->end_position()) return;
    if (!scanner.batch_at(position)) return;
    trust(position, header->end_position());
    index_batch(*header);
    position = header->end_position();
    expected = header->end;
  }
}

std::optional<Offset> SegmentFile::first_since(Timestamp time, std::uint64_t& passed, bool& unavailable) {
  assert(is_mapped());
  SegmentScanner scanner(*file_, BatchMarks::of(header_), end_position_, check_window_bytes);
  const bool is_indexed = index_rest(scanner, passed);
  const auto entries = index_.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].newest < time) continue;
    const std::uint64_t end = i + 1 < entries.size() ? entries[i + 1].position : end_position_;
    std::uint64_t position = entries[i].position;
    for (Offset expected = entries[i].offset; position < end && expected < end_offset_; ++passed) {
      const Step step = step_at(position, expected, offset_not_yet_known, scanner);
      unavailable = step.unavailable;
      if (unavailable || (!step.damaged && time <= step.time)) return expected;
      position = step.next_position;
      expected = step.end;
    }
  }
  unavailable = !is_indexed;
  return is_indexed ? std::nullopt : std::optional(indexed_end_offset_);
}

// Continues the index to the segment's end without reading bodies. Returns false if a part cannot be read
// now.
bool SegmentFile::index_rest(SegmentScanner& scanner, std::uint64_t& passed) {
  if (std::exchange(has_jumped_, false)) index_.drop_from(indexed_end_);
  while (indexed_end_offset_ < end_offset_ && indexed_end_ < end_position_) {
    const Step step = step_at(indexed_end_, indexed_end_offset_, offset_not_yet_known, scanner);
    if (step.unavailable) return false;
    if (step.damaged) index_damage(step.damage);
    ++passed;
  }
  return true;
}

SegmentDamage SegmentFile::find_damage(std::uint64_t position, Offset expected, SegmentScanner& scanner) {
  const auto next = scanner.resume_at(position, expected);
  if (!next || end_offset_ < next->end) return {position, end_position_, expected, end_offset_};
  return {position, next->position, expected, next->base};
}

}  // namespace lightq::log
