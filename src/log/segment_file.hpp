/// One segment file of a log: appending to it, and finding batches in it. Layer: log.
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

/// A stretch of a segment that cannot be read.
struct SegmentDamage {
  std::uint64_t begin = 0;  ///< position
  std::uint64_t end = 0;    ///< position of the next sound batch, or of the segment's end
  Offset first;             ///< what should have begun here
  Offset next;              ///< what can be read again
};

/// What `SegmentFile::locate` found.
struct Located {
  bool found = false;
  std::uint64_t position = 0;  ///< found: of the batch
  SegmentDamage damage;        ///< not found: where the offset should have been
  bool unavailable =
      false;  ///< not found: the bytes there cannot be read now, SegmentFile::read_error says why
};

/// Where a segment lies and what it holds; the file and its mapping are opened when needed and may be let go
/// (`release`) while nothing is unsynced. Positions count from the file's start. One thread, but `file()` may
/// be synced on another.
class SegmentFile {
 public:
  /// A segment with nothing in it. `usable_bytes`: how far batches may reach.
  SegmentFile(std::string path, const SegmentHeader& header, std::uint64_t usable_bytes,
              std::shared_ptr<File> file);

  /// Writes a stamped batch at the end: into the writable mapping if there is one. On error nothing has
  /// changed.
  Result<void> append(const BatchView& batch);
  /// Takes in a stamped batch that already lies at the end of the writable mapping.
  void append_in_place(const BatchView& batch);
  /// The bytes behind the end, at most `wanted`. Requires a writable mapping.
  [[nodiscard]] std::span<std::byte> room(std::uint64_t wanted);
  /// The segment's first page. Requires a writable mapping.
  [[nodiscard]] std::byte* first_page() { return writable_->data(); }
  [[nodiscard]] bool has_room(std::size_t bytes) const { return end_position_ + bytes <= usable_bytes_; }

  /// The batch that holds `offset`, which lies in [first_offset, end_offset). `from`: the position of a batch
  /// that was found here before and begins at or before it, or 0. Requires `open_for_reading`.
  Located locate(Offset offset, std::uint64_t from);
  /// Why the bytes that `locate` or `first_since` wanted last and could not read cannot be read.
  [[nodiscard]] const Error& read_error() const { return read_error_; }
  /// The base offset of its first batch that was appended at `time` or later, if there is one; adds the
  /// batches that were looked at to `passed`. Where it comes to what cannot be read now, `unavailable` is
  /// set, and the answer is where that begins. Requires `open_for_reading`.
  std::optional<Offset> first_since(Timestamp time, std::uint64_t& passed, bool& unavailable);
  /// Valid while the mapping is.
  [[nodiscard]] BatchView batch_at(std::uint64_t position) const {
    return BatchView::trusted(mapping_->data() + position);
  }

  Result<void> open_for_writing(Storage& storage);
  Result<void> open_for_reading(Storage& storage);
  /// As open_for_writing, with a writable mapping, which `views` counts if there are any.
  Result<void> open_mapped(Storage& storage, SegmentViews* views);
  /// Gives it the mapping it is to be written through.
  void write_through(std::shared_ptr<WritableMapping> mapping) { writable_ = std::move(mapping); }
  /// Is written by nobody any more; what comes back is to be let go of where that may take a while.
  std::shared_ptr<WritableMapping> stop_writing() { return std::move(writable_); }
  /// From now on its end is published to `node`.
  void publish_to(std::shared_ptr<SegmentNode> node);
  /// What readers elsewhere see of it; null if nothing is published.
  [[nodiscard]] const std::shared_ptr<SegmentNode>& node() const { return node_; }
  [[nodiscard]] bool is_mapped() const { return mapping_ != nullptr; }
  /// Unmaps, and closes the file unless something is unsynced.
  void release();
  /// Of a full segment: keeps no descriptor of what is not synced yet, see File::rest. False if it has to.
  bool rest() { return !has_to_rest() || file_->rest(path_); }
  [[nodiscard]] bool has_to_rest() const { return file_ != nullptr && !(synced() && seal_written); }
  /// Null when it is not open.
  [[nodiscard]] const std::shared_ptr<File>& file() const { return file_; }

  // Filling it from what lies on disk (recovery).
  void note_batch(const ScannedBatch& batch);
  void note_damage(const SegmentDamage& damage);
  /// It is sealed. The seal is taken at its word; the batches are checked when they are read.
  void set_end(const SegmentSeal& seal);
  /// It goes on from here; what lies before is checked when it is read. `next_sequence`: of the next one.
  void set_checkpoint(const SegmentCheckpoint& checkpoint, std::uint64_t next_sequence);
  void set_unreadable(Offset end);
  /// It was written at that time or later, or before; see `written`.
  void begin_after(Timestamp written) { written_ = std::max(written_, written); }
  void end_before(Timestamp written) { written_ = std::min(written_, written); }

  /// Everything from this position on was written or checked by this process.
  [[nodiscard]] std::uint64_t checked_from() const { return checked_from_; }
  /// The newest checkpoint in the file.
  [[nodiscard]] const SegmentCheckpoint& checkpoint() const { return checkpoint_; }
  /// Writes a checkpoint; its sequence is filled in. Requires `open_for_writing`. On error the one before
  /// still counts.
  Result<void> write_checkpoint(SegmentCheckpoint checkpoint);
  /// Writes a seal. Requires `open_for_writing`.
  Result<void> write_seal(const SegmentSeal& seal);
  /// A batch of `bytes` would end past what the newest checkpoint has reserved.
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
  /// The latest append time of all its batches.
  [[nodiscard]] Timestamp newest() const { return newest_; }
  /// When its newest message was written, for retention: as `newest`, but without the steps of the clock that
  /// its log has made out.
  [[nodiscard]] Timestamp written() const { return written_; }
  [[nodiscard]] bool empty() const { return end_offset_ == first_offset(); }
  /// What a seal, or a checkpoint, would say of it now.
  [[nodiscard]] SegmentSeal seal() const { return {end_position_, end_offset_, newest_, {}}; }

  /// By this process, which has written its header.
  bool begun_here = false;
  /// Nothing has ever been written from here on.
  std::uint64_t new_from = ~std::uint64_t{0};
  /// Takes no more batches.
  bool sealed = false;
  /// The seal that holds for good is in the file.
  bool seal_written = false;
  /// A job has been told to write its index beside it.
  bool index_may_be_stored = false;
  /// How far it was at the last sync.
  SegmentSeal synced_point;
  /// How far the file is known to be synced; 0: not even its header.
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
  // It knows the times of all batches before indexed_end_. What was come to by a jump behind that
  // (has_jumped_) is in it so that its offset is found again.
  SparseIndex index_;
  std::uint64_t indexed_end_ = segment_header_bytes;
  Offset indexed_end_offset_;
  bool has_jumped_ = false;
  std::vector<SegmentDamage> damages_;
  Error read_error_;
  SegmentCheckpoint checkpoint_;
  std::uint64_t checked_from_ = segment_header_bytes;
  // Batches that begin in one of these were written, or checked whole, by this process. A few, so that
  // readers at different places of an old segment do not check it over and over.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::vector<Range> trusted_;
};

}  // namespace lightq::log
