/// Begins the segments of a log. Layer: log.
#include "log/segment_log/segment_roller.hpp"

#include <cstring>
#include <memory>
#include <utility>

namespace lightq::log {

std::string SegmentRoller::path_of_next() const {
  return parts_.directory.path_of(segment_name(parts_.segments.next_offset()));
}

Result<void> SegmentRoller::roll(std::size_t batch_bytes, NewSegment size) {
  SegmentList& segments = parts_.segments;
  if (auto made = parts_.directory.make(); !made) return made;
  if (auto named = parts_.directory.give_name(); !named) return named;
  const bool was_prepared = parts_.next.is_prepared();
  auto prepared = parts_.next.take(batch_bytes, size);
  if (!prepared) return prepared.error();
  const bool replaces = replaces_active();
  SegmentHeader header = prepared->header;
  header.first_offset = segments.next_offset();
  header.key_id = parts_.next.key_id();
  if (replaces) header.gap_begin = segments.active().header().gap_begin;
  const bool name_later = was_prepared && !parts_.next.is_prepared() && parts_.options.prefault && !replaces;
  if (auto placed = put_in_place(*prepared, header, name_later); !placed) {
    static_cast<void>(parts_.storage.unlink(prepared->path));
    return placed;
  }
  // A replaced empty segment stays in the chain: its readers find the new segment behind it.
  const std::shared_ptr<SegmentNode> before = segments.empty() ? nullptr : segments.active().node();
  const Timestamp written = segments.empty() ? Timestamp{} : segments.active().times().written();
  if (replaces) {
    parts_.views.forget(segments.active());
    segments.remove_replaced();
  } else if (!segments.empty()) {
    seal_for_this_boot(segments.active());
  }
  segments.add(
      std::make_unique<SegmentFile>(path_of_next(), header, header.file_bytes, std::move(prepared->file)));
  SegmentFile& begun = segments.active();
  begun.begin(std::move(prepared->mapping), prepared->new_from);
  begun.times().begin_after(written);
  publish(begun, before.get());
  parts_.directory.note_roll();
  parts_.close_mark.note_new_segment();
  parts_.descriptors.release_beyond_hard_limit();
  return {};
}

// Writes the header of the new file and gives the file its name, or leaves the name to a job. The caller
// removes the file if this fails.
Result<void> SegmentRoller::put_in_place(PreparedSegment& prepared, const SegmentHeader& header,
                                         bool name_later) {
  SegmentFile* const active = parts_.segments.empty() ? nullptr : &parts_.segments.active();
  if (auto mapped = parts_.mappings.map(prepared, active); !mapped) return mapped;
  const SegmentPage page = encode_segment_header(header);
  Result<void> done;
  if (prepared.mapping != nullptr) {
    std::memcpy(prepared.mapping->data(), page.data(), page.size());
  } else {
    done = write_all(*prepared.file, page, 0);
  }
  // The new file replaces an empty segment of the same name, which may be the only record of the next offset
  // on disk.
  if (done && replaces_active()) done = prepared.file->sync();
  if (!done) return done;
  if (!name_later) return parts_.storage.rename(prepared.path, path_of_next());
  parts_.directory.name_later(prepared.path, path_of_next());
  parts_.sync.note_unnamed();
  return {};
}

Result<void> SegmentRoller::roll_to_drop(std::size_t batch_bytes) {
  auto rolled = roll(batch_bytes);
  const bool lacks_space = !rolled && rolled.error().code == ErrorCode::no_space;
  return lacks_space && batch_bytes == 0 ? roll(0, NewSegment::smallest) : rolled;
}

void SegmentRoller::publish(SegmentFile& segment, SegmentNode* before) {
  if (parts_.options.views == nullptr) return;
  segment.publish_to(std::make_shared<SegmentNode>(segment.path(), segment.header(), segment.usable_bytes(),
                                                   segment.checked_from()));
  if (segment.empty() && !segment.sealed) segment.node()->index_from_the_start();
  if (before != nullptr) before->set_next(segment.node());
}

// Writes a seal that is valid in this boot only. If the process ends before the next sync, and the machine
// continues, the seal saves a recovery the scan.
void SegmentRoller::seal_for_this_boot(SegmentFile& segment) {
  segment.sealed = true;
  // Opens a segment that this process has not written to. On failure a later sync seals it, if the file is
  // open then.
  static_cast<void>(segment.open_for_writing(parts_.storage));
  SegmentSeal seal = segment.seal();
  seal.boot = {parts_.storage.boot_id()};
  const bool write = !segment.seal_written && segment.file() != nullptr && seal.boot != BootId{};
  if (write) static_cast<void>(segment.marks().write_seal(seal));
  if (!parts_.mappings.may_keep(segment.usable_bytes())) parts_.mappings.stop_writing(segment);
}

}  // namespace lightq::log
