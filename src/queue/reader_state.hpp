/// The position of a reader, and how it advances: within a segment without locks, while the writer appends.
/// Layer: queue.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/home_process.hpp>
#include <lightq/queue.hpp>

#include "queue/populate_window.hpp"
#include "queue/segment_source.hpp"

namespace lightq::queue {

/// Reads records, batch by batch, segment by segment. Thread: one. Lifetime: the source must outlive it.
///
/// The writer publishes in this order:
/// - a record's bytes, then the offset behind it;
/// - a batch's header, then the segment's end;
/// - the segment's end, then its successor.
///
/// The reader reads these in the opposite order, so it sees only complete data. It reads the next offset
/// first. A batch that is incomplete after that was still open when the offset was published, so all records
/// before the offset are in that batch.
class ReaderState {
 public:
  explicit ReaderState(SegmentSource& source) : source_(source), home_(source.home()) {}

  /// Returns true if the next message's position is known, so that message() and take_message() may be
  /// called.
  [[nodiscard]] bool has_message() const { return offset_ < run_end_; }
  /// Finds the next message. Returns false at the end of the log.
  Result<bool> find_message();
  [[nodiscard]] QueuedMessage message() const {
    return QueuedMessage::of(offset_, time_, kinds_,
                             {record_ + sizeof(std::uint32_t), load_little_endian<std::uint32_t>(record_)});
  }
  /// Returns the message and advances past it. Requires: has_message().
  QueuedMessage take_message() {
    const QueuedMessage taken = message();
    record_ = taken.payload.data() + taken.payload.size();
    offset_ = offset_ + 1;
    read_ahead(record_, taken.payload.size());
    return taken;
  }
  /// Returns up to `max` messages of one batch.
  Result<QueuedMessages> take(std::size_t max);
  /// Returns all messages in [first, last), which may be in several batches.
  Result<std::span<const QueuedMessage>> range(Offset first, Offset last);
  /// Moves to `offset`; the next read searches for it.
  void place(Offset offset);

  [[nodiscard]] Offset position() const { return offset_; }
  [[nodiscard]] SegmentSource& source() { return source_; }
  [[nodiscard]] const HomeProcess& home() const { return home_; }
  /// Returns the owner of the memory of the messages returned last: they stay valid as long as it exists.
  [[nodiscard]] std::shared_ptr<const void> pinned() const;

 private:
  enum class Step { ready, end, again };
  Result<Step> find_records();
  Result<Step> enter_segment();
  Result<Step> find_in_segment(Offset next);
  Result<Step> enter_batch(std::uint64_t end);
  Step enter_open_batch(Offset next);
  Result<Step> pass_compressed(const BatchView& batch);
  Result<Step> leave_segment(std::uint64_t end);
  Result<Step> damage_at(std::uint64_t end);
  void start_segment();
  void start_batch(std::uint64_t position);
  void fetch_next_batch() const;
  void skip_records(Offset from, Offset to);
  void start_near();

  SegmentSource& source_;
  const HomeProcess home_;                  // a copy of the source's, which saves one load
  Offset offset_;                           // of the next message
  Offset run_end_;                          // messages from offset_ up to here are known to follow each other
  const std::byte* record_ = nullptr;       // the record of offset_; null: the reader is before the batch
  Timestamp time_;                          // append time of the batch
  AttributeKinds kinds_;                    // attributes of the batch's messages
  std::shared_ptr<log::SegmentNode> node_;  // null: to be searched for
  std::shared_ptr<const log::SegmentView> view_;
  std::uint64_t batch_ = 0;      // position of the current or next batch
  Offset batch_base_;            // offset of that batch's first record
  std::uint64_t batch_end_ = 0;  // its end position; 0: the batch is still open
  std::uint64_t seen_end_ = 0;   // the segment's end when it was last read
  PopulateWindow populate_;
  std::vector<QueuedMessage> messages_;
  // Views of the last range, until the reader advances.
  std::vector<std::shared_ptr<const log::SegmentView>> range_views_;
};

/// Returns the offset of the first message in the first batch, at or behind `node`, that was appended at
/// `time` or later. If there is none, returns the end of the log. Skips damage. Errors: those of a read,
/// except corrupt.
Result<Offset> first_batch_at(SegmentSource& source, const std::shared_ptr<log::SegmentNode>& node,
                              Timestamp time);

}  // namespace lightq::queue
