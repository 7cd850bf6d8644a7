/// One segment file of a log: appends batches to it and finds batches in it. Layer: log.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/batch.hpp>

#include "log/segment_format.hpp"
#include "log/segment_node.hpp"
#include "log/segment_scanner.hpp"
#include "log/sparse_index.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// A range of a segment that cannot be read.
struct SegmentDamage {
  std::uint64_t begin = 0;  ///< position
  std::uint64_t end = 0;    ///< position of the next sound batch, or the segment's end
  Offset first;             ///< offset of the batch that should begin here
  Offset next;              ///< first offset that can be read again
};

/// The result of `SegmentFile::locate`.
struct Located {
  bool found = false;
  std::uint64_t position = 0;  ///< if found: position of the batch
  SegmentDamage damage;        ///< if not found: the damage around the offset
  bool unavailable = false;    ///< if not found: the bytes cannot be read now; see SegmentFile::read_error
};

/// A segment's place on disk and its content. The file and its mapping are opened when needed; `release`
/// closes them while everything is synced. Positions count from the file's start. Thread: one at a time,
/// except that another thread may sync `file()`. Invariant: batches lie without gaps in
/// [segment_header_bytes, end_position), and their offsets are [first_offset, end_offset), apart from damage.
class SegmentFile {
 public:
  /// Creates a segment without batches. `usable_bytes` is the position that no batch may cross.
  SegmentFile(std::string path, const SegmentHeader& header, std::uint64_t usable_bytes,
              std::shared_ptr<File> file);

  /// Writes a stamped batch at the end: into the writable mapping if there is one, otherwise into the file.
  /// On error nothing has changed.
  Result<void> append(const BatchView& batch);
  /// Adds a stamped batch that already lies at the end in the writable mapping.
  void append_in_place(const BatchView& batch);
  /// Returns the bytes behind the end, at most `wanted`. Requires: a writable mapping.
  [[nodiscard]] std::span<std::byte> room(std::uint64_t wanted);
  /// Returns the segment's first page. Requires: a writable mapping.
  [[nodiscard]] std::byte* first_page() { return writable_->data(); }
  [[nodiscard]] bool has_room(std::size_t bytes) const { return end_position_ + bytes <= usable_bytes_; }

  /// Finds the batch with `offset`. `from` is the position of a batch that was found here earlier and begins
  /// at or before the offset, or 0. Requires: `offset` is in [first_offset, end_offset), and
  /// `open_for_reading` has succeeded.
  Located locate(Offset offset, std::uint64_t from);
  /// Returns why the last `locate` or `first_since` could not read bytes that it needed.
  [[nodiscard]] const Error& read_error() const { return read_error_; }
  /// Returns the base offset of the first batch that was appended at `time` or later, or nothing. Adds the
  /// number of examined batches to `passed`. At bytes that cannot be read now, sets `unavailable` and returns
  /// the offset at which they begin. Requires: `open_for_reading` has succeeded.
  std::optional<Offset> first_since(Timestamp time, std::uint64_t& passed, bool& unavailable);
  /// Returns the batch at a position. Lifetime: that of the mapping.
  [[nodiscard]] BatchView batch_at(std::uint64_t position) const {
    return BatchView::trusted(mapping_->data() + position);
  }

  Result<void> open_for_writing(Storage& storage);
  Result<void> open_for_reading(Storage& storage);
  /// Opens the file as open_for_writing does, and maps it for writing. `views` counts the mapping, if it is
  /// not null.
  Result<void> open_mapped(Storage& storage, SegmentViews* views);
  /// Sets the mapping through which appends are written.
  void write_through(std::shared_ptr<WritableMapping> mapping) { writable_ = std::move(mapping); }
  /// Ends writing through the mapping and returns it. The caller destroys it where that may take a while.
  std::shared_ptr<WritableMapping> stop_writing() { return std::move(writable_); }
  /// Publishes the end to `node`, now and after each append.
  void publish_to(std::shared_ptr<SegmentNode> node);
  /// Returns the part of the segment that readers on other threads see; null if it is not published.
  [[nodiscard]] const std::shared_ptr<SegmentNode>& node() const { return node_; }
  [[nodiscard]] bool is_mapped() const { return mapping_ != nullptr; }
  /// Unmaps the file, and closes it unless something is unsynced.
  void release();
  /// Closes the descriptor of a full segment that is not synced yet, see File::release_descriptor. Returns
  /// false if it must stay open.
  bool release_descriptor() { return !needs_descriptor_for_sync() || file_->release_descriptor(path_); }
  /// Returns true if the descriptor is kept only until the segment is synced and sealed.
  [[nodiscard]] bool needs_descriptor_for_sync() const {
    return file_ != nullptr && !(synced() && seal_written);
  }
  /// Returns the open file, or null.
  [[nodiscard]] const std::shared_ptr<File>& file() const { return file_; }

  // Functions for recovery, which fills a segment from the bytes on disk.
  void note_batch(const ScannedBatch& batch);
  void note_damage(const SegmentDamage& damage);
  /// Seals the segment at this end. The seal is trusted; batches are checked when they are read.
  void set_end(const SegmentSeal& seal);
  /// Continues at this checkpoint; batches before it are checked when they are read. `next_sequence` is the
  /// sequence of the next checkpoint.
  void set_checkpoint(const SegmentCheckpoint& checkpoint, std::uint64_t next_sequence);
  void set_unreadable(Offset end);
  /// Limits `written` from below (begin_after) or from above (end_before).
  void begin_after(Timestamp written) { written_ = std::max(written_, written); }
  void end_before(Timestamp written) { written_ = std::min(written_, written); }

  /// Returns a position: everything from it on was written or checked by this process.
  [[nodiscard]] std::uint64_t checked_from() const { return checked_from_; }
  /// Returns the newest checkpoint in the file.
  [[nodiscard]] const SegmentCheckpoint& checkpoint() const { return checkpoint_; }
  /// Writes a checkpoint and fills in its sequence. On error the previous one still counts. Requires:
  /// `open_for_writing` has succeeded.
  Result<void> write_checkpoint(SegmentCheckpoint checkpoint);
  /// Writes a seal. Requires: `open_for_writing` has succeeded.
  Result<void> write_seal(const SegmentSeal& seal);
  /// Returns whether a batch of `bytes` would end past the position that the newest checkpoint has reserved.
  [[nodiscard]] bool needs_reserve(std::size_t bytes) const {
    return checkpoint_.reserved < end_position_ + bytes;
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] std::uint64_t usable_bytes() const { return usable_bytes_; }
  [[nodiscard]] Offset first_offset() const { return header_.first_offset; }
  [[nodiscard]] Offset end_offset() const { return end_offset_; }
  [[nodiscard]] std::uint64_t end_position() const { return end_position_; }
  [[nodiscard]] std::uint64_t stored_bytes() const { return end_position_ - segment_header_bytes; }
  /// Returns the latest append time of all batches.
  [[nodiscard]] Timestamp newest() const { return newest_; }
  /// Returns when the newest message was written, for retention: as `newest`, but without clock jumps that
  /// the log has detected.
  [[nodiscard]] Timestamp written() const { return written_; }
  [[nodiscard]] bool empty() const { return end_offset_ == first_offset(); }
  /// Returns the seal or checkpoint that describes the segment now.
  [[nodiscard]] SegmentSeal seal() const { return {end_position_, end_offset_, newest_, {}}; }

  /// This process began the segment and wrote its header.
  bool begun_here = false;
  /// Nothing was ever written from this position on.
  std::uint64_t new_from = ~std::uint64_t{0};
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
  [[nodiscard]] bool synced() const { return synced_position >= end_position_; }

 private:
  struct Step;
  [[nodiscard]] bool is_trusted(std::uint64_t position) const;
  [[nodiscard]] const SegmentDamage* damage_at(std::uint64_t position, Offset expected) const;
  void trust(std::uint64_t begin, std::uint64_t end);
  Step step_at(std::uint64_t position, Offset expected, Offset wanted, SegmentScanner& scanner);
  void check_ahead(std::uint64_t position, Offset expected, SegmentScanner& scanner);
  SegmentDamage find_damage(std::uint64_t position, Offset expected, SegmentScanner& scanner);
  void note_time(Timestamp time) {
    newest_ = std::max(newest_, time);
    written_ = std::max(written_, time);
  }
  void index_batch(const ScannedBatch& batch);
  void index_damage(const SegmentDamage& damage);
  bool index_rest(SegmentScanner& scanner, std::uint64_t& passed);
  void begin_piece(std::uint64_t end);
  Result<void> write_in_header(ByteView bytes, std::size_t position);

  std::string path_;
  SegmentHeader header_;
  std::uint64_t usable_bytes_;
  std::shared_ptr<File> file_;
  std::unique_ptr<Mapping> mapping_;
  std::shared_ptr<WritableMapping> writable_;
  std::shared_ptr<SegmentNode> node_;
  std::uint64_t end_position_ = segment_header_bytes;
  Offset end_offset_;
  Timestamp newest_;
  Timestamp written_;
  // The index knows the times of all batches before indexed_end_. If has_jumped_ is set, it also has batches
  // behind that position, which were reached by a jump, so that their offsets are found again.
  SparseIndex index_;
  std::uint64_t indexed_end_ = segment_header_bytes;
  Offset indexed_end_offset_;
  bool has_jumped_ = false;
  std::vector<SegmentDamage> damages_;
  Error read_error_;
  SegmentCheckpoint checkpoint_;
  std::uint64_t checked_from_ = segment_header_bytes;
  // Batches that begin in one of these ranges were written or completely checked by this process. There are
  // several ranges, so that readers at different positions of an old segment do not repeat each other's
  // checks.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::vector<Range> trusted_;
};

}  // namespace lightq::log
