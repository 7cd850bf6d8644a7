/// One segment of a log: its file, the end of its batches, and what of it is on disk. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <lightq/base/batch.hpp>

#include "log/format/segment_format.hpp"
#include "log/format/segment_node.hpp"
#include "log/format/segment_scanner.hpp"
#include "log/segment/fresh_bytes.hpp"
#include "log/segment/segment_bytes.hpp"
#include "log/segment/segment_finder.hpp"
#include "log/segment/segment_marks.hpp"
#include "log/segment/segment_times.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// A segment's place on disk and its content. The file and its mapping are opened when needed; `release`
/// closes them while everything is synced. Positions count from the file's start.
///
/// Composes the parts of a segment: SegmentBytes has the file and its mappings, SegmentMarks the checkpoints
/// and the seal, SegmentFinder finds batches, SegmentTimes tells how old the messages are. Owned by the
/// SegmentList of a log; recovery fills it from the bytes on disk.
///
/// Thread: one at a time, except that another thread may sync `file()`.
///
/// Invariant: batches lie without gaps in [segment_header_bytes, end_position), and their offsets are
/// [first_offset, end_offset), apart from damage. Example: a segment that begins at offset 100 gets a batch
/// of 10 records and 500 bytes. Its end_position is 4,596 then, and its end_offset 110.
class SegmentFile {
 public:
  /// Creates a segment without batches. `usable_bytes` is the position that no batch may cross.
  SegmentFile(std::string path, const SegmentHeader& header, std::uint64_t usable_bytes,
              std::shared_ptr<File> file);
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  ~SegmentFile() = default;

  /// Writes a stamped batch at the end: into the writable mapping if there is one, otherwise into the file.
  /// On error nothing has changed.
  Result<void> append(const BatchView& batch);
  /// Adds a stamped batch that already lies at the end in the writable mapping.
  void append_in_place(const BatchView& batch);
  /// Returns the bytes behind the end, at most `wanted`. Requires: a writable mapping.
  [[nodiscard]] std::span<std::byte> room(std::uint64_t wanted);
  /// Returns the segment's first page. Requires: a writable mapping.
  [[nodiscard]] std::byte* first_page() { return bytes_.writable()->data(); }
  [[nodiscard]] bool has_room(std::size_t bytes) const {
    return end_.position + bytes <= bytes_.usable_bytes();
  }

  [[nodiscard]] SegmentFinder& finder() { return finder_; }
  /// Returns the batch at a position. Requires: is_mapped(). Lifetime: that of the mapping.
  [[nodiscard]] BatchView batch_at(std::uint64_t position) const {
    return BatchView::trusted(bytes_.data() + position);
  }

  /// Opens the file unless it is open; for reading only if it is sealed. Errors: io_error.
  Result<void> open_for_writing(Storage& storage) { return bytes_.open(storage, open_mode()); }
  /// Opens and maps the file for reading. Errors: io_error; then a file that was opened for it is closed.
  Result<void> open_for_reading(Storage& storage) { return bytes_.map_for_reading(storage, open_mode()); }
  /// Opens the file as open_for_writing does, and maps it for writing. `views` counts the mapping, if it is
  /// not null.
  Result<void> open_mapped(Storage& storage, SegmentViews* views);
  /// States that this process has begun the segment. Appends go through `mapping` if it is not null. Nothing
  /// was ever written from `new_from` on.
  void begin(std::shared_ptr<WritableMapping> mapping, std::uint64_t new_from);
  /// Ends writing through the mapping and returns it. The caller destroys it where that may take a while.
  std::shared_ptr<WritableMapping> stop_writing() { return bytes_.stop_writing(); }
  /// Publishes the end to `node`, now and after each append.
  void publish_to(std::shared_ptr<SegmentNode> node);
  /// Returns the part of the segment that readers on other threads see; null if it is not published.
  [[nodiscard]] const std::shared_ptr<SegmentNode>& node() const { return node_; }
  [[nodiscard]] bool is_mapped() const { return bytes_.is_readable(); }
  /// Unmaps the file, and closes it unless something is unsynced.
  void release();
  /// Closes the descriptor of a full segment that is not synced yet, see File::release_descriptor. Returns
  /// false if it must stay open.
  bool release_descriptor() { return !needs_descriptor_for_sync() || bytes_.release_descriptor(); }
  /// Returns true if the descriptor is kept only until the segment is synced and sealed.
  [[nodiscard]] bool needs_descriptor_for_sync() const {
    return bytes_.file() != nullptr && !(synced() && seal_written);
  }
  /// Returns the open file, or null.
  [[nodiscard]] const std::shared_ptr<File>& file() const { return bytes_.file(); }

  // Functions for recovery, which fills a segment from the bytes on disk.
  void note_batch(const ScannedBatch& batch);
  void note_damage(const SegmentDamage& damage);
  /// Seals the segment at this end. The seal is trusted; batches are checked when they are read.
  void set_end(const SegmentSeal& seal);
  /// Continues at this checkpoint; batches before it are checked when they are read. `next_sequence` is the
  /// sequence of the next checkpoint.
  void set_checkpoint(const SegmentCheckpoint& checkpoint, std::uint64_t next_sequence);
  void set_unreadable(Offset end);

  /// Returns a position: everything from it on was written or checked by this process.
  [[nodiscard]] std::uint64_t checked_from() const { return checked_from_; }
  [[nodiscard]] SegmentMarks& marks() { return marks_; }
  [[nodiscard]] SegmentTimes& times() { return times_; }
  [[nodiscard]] const SegmentTimes& times() const { return times_; }

  [[nodiscard]] const std::string& path() const { return bytes_.path(); }
  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] std::uint64_t usable_bytes() const { return bytes_.usable_bytes(); }
  [[nodiscard]] Offset first_offset() const { return header_.first_offset; }
  [[nodiscard]] Offset end_offset() const { return end_.offset; }
  [[nodiscard]] std::uint64_t end_position() const { return end_.position; }
  [[nodiscard]] std::uint64_t stored_bytes() const { return end_.position - segment_header_bytes; }
  [[nodiscard]] bool empty() const { return end_.offset == first_offset(); }
  /// Returns the seal or checkpoint that describes the segment now.
  [[nodiscard]] SegmentSeal seal() const { return {end_.position, end_.offset, times_.newest(), {}}; }

  /// This process began the segment and wrote its header.
  bool begun_here = false;
  /// The segment takes no more batches.
  bool sealed = false;
  /// The file has the seal with boot 0, which stays valid after a power cut.
  bool seal_written = false;
  /// A job was created that writes the segment's index file.
  bool index_may_be_stored = false;
  /// The segment's end at the last sync.
  SegmentSeal synced_point;
  /// Position up to which the file is synced; 0: not even its header is.
  std::uint64_t synced_position = 0;
  [[nodiscard]] bool synced() const { return synced_position >= end_.position; }

 private:
  [[nodiscard]] OpenMode open_mode() const {
    return sealed && seal_written ? OpenMode::read_only : OpenMode::read_write;
  }

  const SegmentHeader header_;
  SegmentBytes bytes_;
  SegmentEnd end_;
  SegmentFinder finder_{header_, bytes_, end_};
  SegmentMarks marks_{header_, bytes_};
  SegmentTimes times_;
  FreshBytes fresh_;
  std::shared_ptr<SegmentNode> node_;
  std::uint64_t checked_from_ = segment_header_bytes;
};

}  // namespace lightq::log
