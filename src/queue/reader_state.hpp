/// Where a reader stands, and how it goes on: without locks within a segment, beside the writer. Layer:
/// queue.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/home_process.hpp>
#include <lightq/queue.hpp>

#include "queue/populate_window.hpp"
#include "queue/segment_source.hpp"

namespace lightq::queue {

/// Walks records, batch by batch, segment by segment. One thread; the source must outlive it.
///
/// The writer publishes, in this order: a record's bytes, then the offset behind it; a batch's header, then
/// the segment's end; the segment's end, then its successor. The reader looks in the opposite order, so what
/// it sees is whole: it takes the next offset first, and a batch that was not complete after that was still
/// open when that offset was published, so all records before it are in that batch.
class ReaderState {
 public:
  explicit ReaderState(SegmentSource& source) : source_(source), home_(source.home()) {}

  /// A message is known to lie at its place: message() and take_message() may be called.
  [[nodiscard]] bool has_message() const { return offset_ < run_end_; }
  /// Looks for the next message; false at the end of the log.
  Result<bool> find_message();
  [[nodiscard]] QueuedMessage message() const {
    return QueuedMessage::of(offset_, time_, kinds_,
                             {record_ + sizeof(std::uint32_t), load_little_endian<std::uint32_t>(record_)});
  }
  /// Gives the message and goes on behind it.
  QueuedMessage take_message() {
    const QueuedMessage taken = message();
    record_ = taken.payload.data() + taken.payload.size();
    offset_ = offset_ + 1;
    read_ahead(record_, taken.payload.size());
    return taken;
  }
  /// Up to `max` messages of one batch.
  Result<QueuedMessages> take(std::size_t max);
  /// All from `first` to `last`, however many batches they are in.
  Result<std::span<const QueuedMessage>> range(Offset first, Offset last);
  /// Goes to `offset`, which is looked for at the next read.
  void place(Offset offset);

  [[nodiscard]] Offset position() const { return offset_; }
  [[nodiscard]] SegmentSource& source() { return source_; }
  [[nodiscard]] const HomeProcess& home() const { return home_; }
  /// What keeps the messages given last valid.
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
  const HomeProcess home_;             // the source's, where it costs one load less
  Offset offset_;                      // of the next message
  Offset run_end_;                     // the messages from offset_ up to here are known to be there, in a row
  const std::byte* record_ = nullptr;  // the record of offset_; null: it stands before the batch
  Timestamp time_;                     // of the batch
  AttributeKinds kinds_;               // likewise
  std::shared_ptr<log::SegmentNode> node_;  // null: to be looked for
  std::shared_ptr<const log::SegmentView> view_;
  std::uint64_t batch_ = 0;      // position of the batch it stands in or before
  Offset batch_base_;            // of that batch's first record
  std::uint64_t batch_end_ = 0;  // position; 0: the batch is still open
  std::uint64_t seen_end_ = 0;   // of the segment, when it was looked at last
  PopulateWindow populate_;
  std::vector<QueuedMessage> messages_;
  std::vector<std::shared_ptr<const log::SegmentView>> range_views_;  // of the last range, until it goes on
};

/// The first message of the first batch at or behind `node` that was appended at `time` or later; the end of
/// the log if there is none. What cannot be read is passed over. Errors: io_error.
Result<Offset> first_batch_at(SegmentSource& source, const std::shared_ptr<log::SegmentNode>& node,
                              Timestamp time);

}  // namespace lightq::queue
