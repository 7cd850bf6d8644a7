/// Opens the segments that an earlier process left. docs/log_format.md, "Recovery". Layer: log.
#include "log/segment/recovery.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "log/format/open_batch.hpp"
#include "log/format/segment_index_file.hpp"
#include "log/format/segment_key.hpp"
#include "log/format/segment_listing.hpp"
#include "log/format/unnamed_segment.hpp"
#include "log/segment/failed_sync.hpp"
#include "log/segment/torn_tail.hpp"

namespace lightq::log {

namespace {

/// A segment file as recovery finds it.
struct FoundFile {
  std::string path;
  Offset name_offset;
  std::shared_ptr<File> file;
  std::uint64_t size_bytes = 0;
  SegmentPage page{};
  DecodedHeader decoded;
};

class Recovery {
 public:
  Recovery(const std::string& directory, Storage& storage, const BatchCiphers* ciphers,
           const ExpectedLog& expected)
      : directory_(directory), storage_(storage), ciphers_(ciphers), expected_(expected) {}
  Result<RecoveredSegments> run();

 private:
  Result<void> look_whose_it_is();
  [[nodiscard]] Result<void> check_owner(const FoundFile& file) const;
  Result<std::vector<Offset>> list_all_segments();
  Result<void> remove_unfinished(std::vector<Offset>& names);
  void remove_segment(const FoundFile& found);
  Result<void> make_changes();
  bool shows_earlier_life(const FoundFile& found, const std::vector<Offset>& names);
  std::optional<FoundFile> first_with_its_header(const std::vector<Offset>& names);
  std::optional<std::uint64_t> incarnation_of(const std::vector<Offset>& names);
  static std::optional<ScannedBatch> first_batch(FoundFile& found, SegmentScanner& scanner);
  Result<FoundFile> look_at(Offset name_offset);
  Result<void> add(FoundFile& found, std::optional<Offset> next_name);
  Result<void> check_key(const FoundFile& found, const SegmentHeader& header);
  Result<void> add_sound(FoundFile& found, SegmentHeader header, std::optional<Offset> next_name);
  Result<void> add_unreadable(FoundFile& found, std::optional<Offset> next_name);
  Result<void> add_unsealed(SegmentFile& segment, const FoundFile& found, bool last);
  Result<void> scan(SegmentFile& segment, SegmentScanner& scanner);
  Result<void> finish_open_batch(SegmentFile& segment, SegmentScanner& scanner, const OpenBatchMark& mark);
  Result<void> cut_tail(SegmentFile& segment, SegmentScanner& scanner, bool last);
  void report_damage(const SegmentFile& segment, const SegmentDamage& damage);
  Result<void> check_continuity(const SegmentFile& segment);
  void add_up();

  const std::string& directory_;
  Storage& storage_;
  const BatchCiphers* const ciphers_;
  const ExpectedLog& expected_;
  const BootId boot_{storage_.boot_id()};
  std::optional<Offset> unnamed_;  // the newest segment, if it still has no name
  bool removed_last_ = false;      // a last file without messages is removed
  // The changes on disk, made after all files have been read: a log that is refused stays unchanged.
  std::vector<std::function<Result<void>()>> changes_;
  RecoveredSegments result_;
};

Result<RecoveredSegments> Recovery::run() {
  if (auto looked = look_whose_it_is(); !looked) return looked.error();
  auto names = list_all_segments();
  if (!names) return names.error();
  if (const auto removed = remove_unfinished(*names); !removed) return removed.error();
  for (std::size_t i = 0; i < names->size(); ++i) {
    auto found = look_at((*names)[i]);
    if (!found) return found.error();
    const bool last = i + 1 == names->size();
    const auto added = add(*found, last ? std::nullopt : std::optional((*names)[i + 1]));
    if (!added) return added.error();
  }
  if (const auto made = make_changes(); !made) return made.error();
  add_up();
  return std::move(result_);
}

// Called before anything is changed.
Result<void> Recovery::look_whose_it_is() {
  if (expected_.id == 0) return {};
  const auto files = list_if_there(directory_, storage_);
  if (!files) return files.error();
  const auto first = first_with_its_header(named_segments(*files));
  return first ? check_owner(*first) : Result<void>{};
}

// The error of check_segment_encrypted says more about an unencrypted file.
Result<void> Recovery::check_owner(const FoundFile& file) const {
  const SegmentHeader& header = *file.decoded.header;
  const std::uint32_t found = log_id_of(header.incarnation);
  if (expected_.id == 0 || found == expected_.id) return {};
  const KeyedSegment segment{file.path, *file.file, header, std::min(file.size_bytes, header.file_bytes)};
  auto encrypted = ciphers_ == nullptr ? Result<void>{} : check_segment_encrypted(segment);
  if (!encrypted) return encrypted;
  const auto id_text = [](std::uint32_t id) { return key_id_text(id).substr(8); };
  std::string owner;
  if (expected_.names != nullptr && expected_.names->contains(found))
    owner = ", that of topic " + expected_.names->at(found);
  return Error{ErrorCode::corrupt, directory_ + " belongs to another topic: its files are of log " +
                                       id_text(found) + owner + ", but log " + id_text(expected_.id) +
                                       " is expected here; nothing was changed"};
}

// Lists the segments, including one without a name. Schedules the newest one's rename, and the removal of
// other prepared files of the earlier process.
Result<std::vector<Offset>> Recovery::list_all_segments() {
  const auto files = list_if_there(directory_, storage_);
  if (!files) return files.error();
  std::vector<Offset> names = named_segments(*files);
  const auto unnamed = unnamed_segment(directory_, names, storage_);
  if (!unnamed) return unnamed.error();
  unnamed_ = *unnamed;
  if (unnamed_) {
    names.push_back(*unnamed_);
    changes_.emplace_back([this, to = directory_ + "/" + segment_name(*unnamed_)] {
      return storage_.rename(directory_ + "/" + next_prepared_name, to);
    });
  }
  for (const std::string& name : *files) {
    if (!name.ends_with(prepared_suffix) || (unnamed_ && name == next_prepared_name)) continue;
    changes_.emplace_back([this, path = directory_ + "/" + name] {
      static_cast<void>(storage_.unlink(path));
      return Result<void>{};
    });
  }
  return names;
}

// Makes the scheduled changes in order, each only once.
Result<void> Recovery::make_changes() {
  for (const auto& change : std::exchange(changes_, {})) {
    if (auto made = change(); !made) return made;
  }
  return {};
}

// Schedules the removal of last files without their own header and without messages, from appends that a
// power cut undid. It removes them in one recovery, so that the next open finds the same log.
Result<void> Recovery::remove_unfinished(std::vector<Offset>& names) {
  while (!names.empty()) {
    auto found = look_at(names.back());
    if (!found) return found.error();
    const bool blank = !found->decoded.header && found->decoded.fault == HeaderFault::blank;
    if (!blank && !shows_earlier_life(*found, names)) return {};
    const BatchMarks marks = BatchMarks::under_lost_header(blank ? nullptr : &*found->decoded.header, 0);
    SegmentScanner scanner(*found->file, marks, found->size_bytes);
    if (first_batch(*found, scanner)) return {};
    if (auto readable = check_readable(found->path, scanner, 0, found->size_bytes); !readable)
      return readable;
    if (scanner.newer()) return {};
    remove_segment(*found);
    removed_last_ = true;
    result_.report.bytes_cut += found->size_bytes;
    result_.report.cut_file = found->path;
    names.pop_back();
  }
  return {};
}

// Also removes a leftover index file: the next segment of this name has its own index or none.
void Recovery::remove_segment(const FoundFile& found) {
  changes_.emplace_back([this, path = found.path, name = found.name_offset] {
    static_cast<void>(storage_.unlink(directory_ + "/" + segment_index_name(name)));
    return storage_.unlink(path);
  });
}

// Returns true if the file was recycled and its new header never reached the disk. The old one then names an
// offset before the whole log: that segment was dropped, and its name durably removed.
bool Recovery::shows_earlier_life(const FoundFile& found, const std::vector<Offset>& names) {
  if (!found.decoded.header || names.front() <= found.decoded.header->first_offset) return false;
  return incarnation_of(names) == found.decoded.header->incarnation;
}

// Returns the first file with its own header, and so the log's incarnation. It need not be the oldest:
// without syncs, only the newest file at the time when others were dropped surely has its header on disk.
std::optional<FoundFile> Recovery::first_with_its_header(const std::vector<Offset>& names) {
  for (const Offset name : names) {
    auto found = look_at(name);
    if (!found || !found->decoded.header) continue;
    const Offset first = found->decoded.header->first_offset;
    if (first == name || first == offset_not_yet_known) return std::move(*found);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Recovery::incarnation_of(const std::vector<Offset>& names) {
  const auto found = first_with_its_header(names);
  return found ? std::optional(found->decoded.header->incarnation) : std::nullopt;
}

// Returns the first batch with an offset at or past that in the file's name, of the scanner's epochs.
std::optional<ScannedBatch> Recovery::first_batch(FoundFile& found, SegmentScanner& scanner) {
  const auto batch = scanner.batch_at(segment_header_bytes);
  if (batch && found.name_offset <= batch->base) return batch;
  return scanner.resume_after(segment_header_bytes, found.name_offset);
}

Result<FoundFile> Recovery::look_at(Offset name_offset) {
  FoundFile found;
  found.path = directory_ + "/" + segment_name(name_offset);
  found.name_offset = name_offset;
  const std::string path = unnamed_ == name_offset ? directory_ + "/" + next_prepared_name : found.path;
  auto file = storage_.open(path, OpenMode::read_write);
  if (!file) return file.error();
  found.file = std::move(*file);
  const auto size = found.file->size_bytes();
  if (!size) return size.error();
  found.size_bytes = *size;
  if (const auto came = read_all(*found.file, found.page, 0); !came) return came.error();
  found.decoded = decode_segment_header(found.page);
  const bool cut_short =
      found.size_bytes < segment_seal_position && found.decoded.fault != HeaderFault::blank;
  if (cut_short) found.decoded = {};
  return found;
}

Result<void> Recovery::add(FoundFile& found, std::optional<Offset> next_name) {
  if (!found.decoded.header) {
    if (found.decoded.fault == HeaderFault::foreign) return foreign_segment(found.path, found.page);
    return add_unreadable(found, next_name);
  }
  SegmentHeader header = *found.decoded.header;
  if (header.first_offset == offset_not_yet_known) header.first_offset = found.name_offset;
  if (result_.incarnation == 0) {
    if (auto checked = check_owner(found); !checked) return checked;
    result_.incarnation = header.incarnation;
  }
  if (header.first_offset != found.name_offset || header.incarnation != result_.incarnation) {
    return add_unreadable(found, next_name);
  }
  if (auto checked = check_key(found, header); !checked) return checked;
  result_.batch_mask = header.batch_mask;
  return add_sound(found, header, next_name);
}

// A missing key, or an unencrypted file among encrypted ones, is not damage, which readers would skip: the
// log does not open, and nothing is changed.
Result<void> Recovery::check_key(const FoundFile& found, const SegmentHeader& header) {
  if (result_.cipher == nullptr && ciphers_ != nullptr) result_.cipher = ciphers_->of(result_.incarnation);
  const KeyedSegment segment{found.path, *found.file, header, std::min(found.size_bytes, header.file_bytes)};
  if (auto checked = check_segment_key(segment, result_.cipher.get()); !checked) return checked;
  return ciphers_ == nullptr ? Result<void>{} : check_segment_encrypted(segment);
}

Result<void> Recovery::add_sound(FoundFile& found, SegmentHeader header, std::optional<Offset> next_name) {
  // A file that was truncated is extended to its full size, if the disk has space.
  if (found.size_bytes < header.file_bytes && !next_name) {
    if (auto known = check_all_known(found.path, *found.file, header, found.size_bytes); !known) return known;
    if (found.file->allocate(header.file_bytes)) found.size_bytes = header.file_bytes;
  }
  const std::uint64_t usable = std::min(found.size_bytes, header.file_bytes);
  auto segment = std::make_unique<SegmentFile>(found.path, header, usable, found.file);
  segment->synced_position = 0;
  const auto seal = decode_segment_seal(found.page, header, boot_);
  // This includes the last file: its successor may be lost, but a sealed segment is never appended to.
  const bool sealed = seal && seal->end_position <= usable && header.first_offset <= seal->end_offset &&
                      segment_header_bytes <= seal->end_position;
  if (sealed) {
    segment->set_end(*seal);
    // The segment is full and on disk: as good as a closed log, unless a file behind it was removed.
    result_.report.closed = !next_name && segment->seal_written && !removed_last_;
  } else {
    if (auto added = add_unsealed(*segment, found, !next_name); !added) return added;
    if (next_name || usable < header.file_bytes) segment->sealed = true;
    if (!next_name && usable < header.file_bytes && segment->empty()) {
      remove_segment(found);
      return {};
    }
  }
  if (const auto continuous = check_continuity(*segment); !continuous) return continuous;
  // Make the changes first: a released segment is opened by its name later.
  if (auto made = next_name ? Result<void>{} : make_changes(); !made) return made;
  segment->release();
  result_.segments.push_back(std::move(segment));
  return {};
}

// Scans from the newest checkpoint on. Nothing was written beyond the checkpoint's reserved position.
Result<void> Recovery::add_unsealed(SegmentFile& segment, const FoundFile& found, bool last) {
  const SegmentHeader& header = segment.header();
  auto checkpoint = decode_segment_checkpoint(found.page, header, boot_);
  const bool plausible = checkpoint && segment_header_bytes <= checkpoint->end_position &&
                         checkpoint->end_position <= segment.usable_bytes() &&
                         header.first_offset <= checkpoint->end_offset;
  if (!plausible) {
    checkpoint = first_checkpoint(header);
    checkpoint->reserved = segment.usable_bytes();
  }
  segment.set_checkpoint(*checkpoint, highest_checkpoint_sequence(found.page, header) + 1);
  if (plausible && checkpoint->clean) {
    if (checkpoint->boot == BootId{}) segment.synced_position = segment.end_position();
    result_.report.closed = last;
    result_.report.closed_for_good = last && has_both_clean_marks(found.page, header);
    return {};
  }
  const std::uint64_t from = segment.end_position();
  const bool to_its_end = segment.usable_bytes() <= checkpoint->reserved;
  const std::uint64_t limit = std::min(checkpoint->reserved, segment.usable_bytes());
  SegmentScanner scanner(*found.file, BatchMarks::of(header), limit);
  if (auto scanned = scan(segment, scanner); !scanned) return scanned;
  if (const auto mark = decode_open_mark(found.page, header, boot_)) {
    if (auto finished = finish_open_batch(segment, scanner, *mark); !finished) return finished;
  }
  result_.report.scanned_bytes += limit - std::min(from, limit);
  if (to_its_end) return cut_tail(segment, scanner, last);
  // Beyond the limit there may be batches that never became durable, so nothing is appended before them.
  segment.sealed = true;
  return check_readable(segment.path(), scanner, segment.end_position(), limit);
}

// Completes the batch that collected single messages when the process ended, as far as its mark goes.
Result<void> Recovery::finish_open_batch(SegmentFile& segment, SegmentScanner& scanner,
                                         const OpenBatchMark& mark) {
  const bool here = mark.position == segment.end_position() && mark.base == segment.end_offset();
  if (!here) return {};
  const std::uint64_t needed = batch_layout::header_bytes + std::uint64_t{mark.bytes};
  const ByteView there = scanner.bytes_at(mark.position, needed, needed);
  if (there.size() < needed) return {};
  if (auto readable = check_readable(segment.path(), scanner, mark.position, mark.position + needed);
      !readable)
    return readable;
  std::vector<std::byte> batch(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(needed));
  if (!complete_open_batch(batch, mark, segment.header())) return {};
  changes_.emplace_back([this, path = segment.path(), batch, position = mark.position]() -> Result<void> {
    const auto file = storage_.open(path, OpenMode::read_write);
    if (!file) return file.error();
    return write_all(**file, ByteView(batch).first(batch_layout::header_bytes), position);
  });
  const BatchView view = BatchView::trusted(batch.data());
  segment.note_batch({mark.position, needed, view.base_offset(), view.end_offset(), view.append_time(),
                      view.segment_epoch(), segment.header().batch_mask});
  return {};
}

// Adds a file with a lost header. Without the header's epoch, the log's batches cannot be distinguished from
// older bytes. The segment keeps its range of offsets, so that other messages never get them.
Result<void> Recovery::add_unreadable(FoundFile& found, std::optional<Offset> next_name) {
  Offset end = next_name.value_or(found.name_offset);
  if (!next_name) {
    const auto& header = found.decoded.header;
    const bool ours = header && header->incarnation == result_.incarnation;
    const BatchMarks marks = BatchMarks::under_lost_header(ours ? &*header : nullptr, result_.batch_mask);
    SegmentScanner scanner(*found.file, marks, found.size_bytes);
    for (auto batch = first_batch(found, scanner); batch;
         batch = scanner.resume_after(batch->position, batch->end)) {
      end = batch->end;
    }
    if (auto readable = check_readable(found.path, scanner, 0, found.size_bytes); !readable) return readable;
    end = std::max(end, end_of_reserved(found.name_offset));  // so that the next segment gets another name
  }
  SegmentHeader header;
  header.first_offset = found.name_offset;
  header.incarnation = result_.incarnation;
  header.file_bytes = found.size_bytes;
  auto segment = std::make_unique<SegmentFile>(found.path, header, found.size_bytes, nullptr);
  segment->set_unreadable(end);
  if (const auto continuous = check_continuity(*segment); !continuous) return continuous;
  report_damage(*segment, {0, found.size_bytes, found.name_offset, end});
  result_.segments.push_back(std::move(segment));
  return {};
}

// Reads batch after batch while all are sound. Continues behind damage if a sound batch follows it.
Result<void> Recovery::scan(SegmentFile& segment, SegmentScanner& scanner) {
  for (;;) {
    const std::uint64_t position = segment.end_position();
    const Offset expected = segment.end_offset();
    const auto batch = scanner.batch_at(position);
    if (batch && batch->base == expected) {
      segment.note_batch(*batch);
      continue;
    }
    const auto next = scanner.resume_at(position, expected);
    if (auto known = check_known(segment.path(), scanner); !known) return known;
    if (!next) return {};
    if (auto readable = check_readable(segment.path(), scanner, position, next->position); !readable)
      return readable;
    const SegmentDamage damage{position, next->position, expected, next->base};
    segment.note_damage(damage);
    report_damage(segment, damage);
  }
}

// Cuts the tail: no sound batch follows the end. Bytes of this segment's epoch there belong to an unfinished
// append, and are counted as cut. Everything behind the end becomes zeros, so that no later append can
// complete it. A crash during several appends may have kept any of their sectors from the disk. A sector that
// is there may be the end of a batch whose beginning the next append writes again.
Result<void> Recovery::cut_tail(SegmentFile& segment, SegmentScanner& scanner, bool last) {
  const std::uint64_t tail = segment.end_position();
  const ByteView header = scanner.bytes_at(tail, batch_layout::header_bytes, batch_layout::header_bytes);
  const std::uint64_t header_end = std::min(tail + batch_layout::header_bytes, segment.usable_bytes());
  std::uint64_t end = std::max(tail, scanner.claimed_end());
  if (end == tail && header.size() >= sizeof(std::uint32_t) &&
      load_little_endian<std::uint32_t>(header.data()) == batch_layout::magic_value) {
    const ByteView there(header.data(), segment.usable_bytes() - tail);
    const bool stale = scanner.header_at(tail).has_value() ||
                       !BatchView::check_stored_header(there, segment.header().batch_mask).has_value();
    // A sound header of another epoch remains from before the file was recycled.
    if (!stale) end = header_end;
  }
  end = std::max(tail, std::min(end, segment.usable_bytes()));
  if (auto readable = check_readable(segment.path(), scanner, tail, std::max(end, header_end)); !readable)
    return readable;
  if (end != tail) {
    result_.report.bytes_cut += end - tail;
    result_.report.cut_file = segment.path();
  }
  // Nothing is ever appended before another segment.
  if (!last) return {};
  if (auto made = make_changes(); !made) return made;
  auto wiped = wipe_tail(segment, tail, scanner);
  if (!wiped) mark_failed_sync(directory_, storage_);  // else the next start would accept the zeros
  return wiped;
}

void Recovery::report_damage(const SegmentFile& segment, const SegmentDamage& damage) {
  result_.report.damaged.push_back({segment.path(), damage.begin, damage.end, damage.first, damage.next});
}

// A segment must begin where the previous one ended, or messages are missing.
Result<void> Recovery::check_continuity(const SegmentFile& segment) {
  if (result_.segments.empty()) return {};
  const SegmentFile& before = *result_.segments.back();
  if (segment.first_offset() < before.end_offset()) {
    return Error{ErrorCode::corrupt,
                 segment.path() + " begins at offset " + std::to_string(segment.first_offset().value) +
                     ", but " + before.path() + " contains that too (up to " +
                     std::to_string(before.end_offset().value) + ")",
                 0};
  }
  Offset missing_end = segment.first_offset();
  const Offset gap = segment.header().gap_begin;
  if (gap.value != 0 && before.end_offset() <= gap && gap < missing_end) {
    result_.report.gap_messages += distance(gap, missing_end);
    missing_end = gap;
  }
  if (before.end_offset() < missing_end) {
    report_damage(before, {before.end_position(), before.end_position(), before.end_offset(), missing_end});
  }
  return {};
}

void Recovery::add_up() {
  RecoveryReport& report = result_.report;
  report.segments = result_.segments.size();
  for (const DamagedRange& range : report.damaged) report.damaged_messages += range.messages();
  if (result_.segments.empty()) return;
  // All is durable up to the first unsynced segment, and within that one up to its last checkpoint.
  for (const auto& segment : result_.segments) {
    result_.durable = segment->synced() ? segment->end_offset() : segment->synced_point.end_offset;
    if (!segment->synced()) break;
  }
  report.messages =
      distance(result_.segments.front()->first_offset(), result_.segments.back()->end_offset()) -
      report.damaged_messages - report.gap_messages;
}

}  // namespace

Result<RecoveredSegments> recover_segments(const std::string& directory, Storage& storage,
                                           const BatchCiphers* ciphers, const ExpectedLog& expected) {
  return Recovery(directory, storage, ciphers, expected).run();
}

std::string RecoveryReport::text() const {
  std::string sentence = std::to_string(messages) + " messages in " + std::to_string(segments) + " segments";
  if (gap_messages != 0) {
    sentence += "; " + std::to_string(gap_messages) + " messages are missing since a repair";
  }
  if (bytes_cut != 0) {
    sentence += "; cut " + std::to_string(bytes_cut) + " bytes of an unfinished append from " + cut_file;
  }
  if (damaged.empty()) return sentence;
  const DamagedRange& first_range = damaged.front();
  sentence += "; " + std::to_string(damaged.size()) + " damaged ranges with " +
              std::to_string(damaged_messages) + " messages, the first in " + first_range.file +
              " at position " + std::to_string(first_range.begin_position) + ": offsets " +
              std::to_string(first_range.first.value) + " up to " + std::to_string(first_range.next.value);
  return sentence;
}

}  // namespace lightq::log
