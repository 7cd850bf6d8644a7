/// Packs small messages into a batch at the end of a queue's log. Layer: queue.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <lightq/queue.hpp>

#include "log/format/open_batch.hpp"
#include "queue/coarse_clock.hpp"
#include "queue/queue_log.hpp"

namespace lightq::queue {

/// Collects messages in the open batch, in place at the log's end, and decides how long it stays open: until
/// it is full, or until its time would be wrong by more than 10 ms.
///
/// Owns the open batch, and the beat of the clock at which it was last known to be young. Called by Engine
/// for each message and by QueueAppender for each batch. Thread: the writer's, or guarded by the queue's
/// lock with many writers; begun and completed under the lock.
///
/// Invariant: while a batch is open, nothing else is appended to the log.
class MessagePacker {
 public:
  /// Lifetime: `log` must outlive this object.
  explicit MessagePacker(QueueLog& log);

  /// Returns true if the open batch takes one more message: it has space, and the pulse shows that its time
  /// is still right.
  [[nodiscard]] bool takes_at_once(std::size_t payload_bytes) const {
    return has_room_for(payload_bytes) && beat_->load(std::memory_order_relaxed) == batch_beat_;
  }
  /// Returns true if the open batch takes one more message: it has space, and the clock shows that its time
  /// is still right.
  [[nodiscard]] bool takes(std::size_t payload_bytes) { return has_room_for(payload_bytes) && is_young(); }
  /// Adds a message and returns its offset. Requires: the open batch takes it.
  Offset add(ByteView payload) {
    const Offset offset = open_.next_offset();
    open_.add(payload);
    return offset;
  }
#ifdef LIGHTQ_RECORD_SUM_WIDE
  /// See add. Requires: RecordSum::may_be_wide is true for the message.
  LIGHTQ_AVX2_INLINE Offset add_wide(ByteView payload) {
    const Offset offset = open_.next_offset();
    open_.add_wide(payload);
    return offset;
  }
#endif

  /// Returns the size of the largest message that is packed; a larger one gets a batch of its own.
  [[nodiscard]] std::size_t packed_bytes_max() const { return packed_bytes_max_; }
  [[nodiscard]] bool is_open() const { return open_.is_open(); }
  /// Opens a batch in `room` with space for at most `records` messages. Requires: none is open.
  void open(const log::RoomInPlace& room, std::uint64_t records);
  /// Appends the open batch to the log, if there is one.
  void close();

  /// Returns true if a clock beats, because messages come quickly.
  [[nodiscard]] bool has_beat() const { return beat_->load(std::memory_order_relaxed) != CoarseClock::still; }
  /// Lets the next message be checked as if a beat had passed, and the clock beat once more.
  void end_beat();
  /// Returns the clock; null unless one thread writes and there is a background thread.
  [[nodiscard]] CoarseClock* pulse() const { return pulse_.get(); }

 private:
  [[nodiscard]] bool has_room_for(std::size_t payload_bytes) const {
    return open_.fits(payload_bytes) && payload_bytes <= packed_bytes_max_;
  }
  [[nodiscard]] bool is_young();
  void note_beat();

  log::OpenBatch open_;
  const std::size_t packed_bytes_max_;
  const std::shared_ptr<CoarseClock> pulse_;
  const std::atomic<std::uint32_t>* const beat_;   // the pulse's beat, or a constant one
  static constexpr std::uint32_t no_beat_yet = 1;  // odd, because beats are always even
  std::uint32_t batch_beat_ = no_beat_yet;  // the beat at which the open batch was last found to be recent
  QueueLog& log_;
  const log::BootId boot_;
};

}  // namespace lightq::queue
