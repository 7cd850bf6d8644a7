/// The content of delayed messages: in a log, or in memory. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delayed/waiting_index.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// A message's content. Lifetime of `message`: until the next call of the object that returned it, and until
/// the log's next change.
struct DelayedBody {
  enum class Outcome : std::uint8_t {
    found,
    damaged,      ///< never to be read again
    unavailable,  ///< perhaps later
  };
  Outcome outcome = Outcome::damaged;
  AttributeKinds kinds = {};  ///< of `message`; never with a due time
  Timestamp arrived = {};     ///< when the schedule has stored it
  ByteView message = {};      ///< attributes and payload
};

/// The contents of neighbouring messages of one length, as DelayedBody. `records` begins with the length
/// field of the first one's record, or where that would be. The others follow at equal distances.
struct DelayedBodies {
  DelayedBody::Outcome outcome = DelayedBody::Outcome::damaged;
  AttributeKinds kinds = {};
  Timestamp arrived = {};
  const std::byte* records = nullptr;
  std::size_t stride = 0;   ///< from one to the next
  std::uint32_t bytes = 0;  ///< of each message
  std::uint32_t count = 1;  ///< of messages; of those that are not found, it is 1

  /// Returns a message. Requires: found; `index` is below the count.
  [[nodiscard]] ByteView message(std::uint32_t index) const {
    return {records + sizeof(std::uint32_t) + index * stride, bytes};
  }
  [[nodiscard]] DelayedBody first() const {
    if (outcome != DelayedBody::Outcome::found) return {.outcome = outcome};
    return {outcome, kinds, arrived, message(0)};
  }
  /// Writes the first `messages` as records of a topic's log, which take record_bytes(bytes) each.
  void write(std::byte* to, std::uint32_t messages) const;
};

/// Reads the messages of a schedule on disk. A message's place is an offset of the schedule's log. Keeps the
/// positions of some records of long batches, so that a read in any order walks over at most `step` records.
/// Thread: one.
class LogBodies {
 public:
  static constexpr std::uint32_t step = 16;
  /// The most positions that are kept, of all batches together: 4 MiB.
  static constexpr std::size_t positions_max = 1'048'576;

  /// Lifetime: `log` outlives this object.
  explicit LogBodies(log::BatchLog& log) : log_(log) {}
  /// Reads the first messages of a run: those in one batch. Their places ascend by one from `place` on.
  /// Requires: all have the same length.
  DelayedBodies read(std::uint64_t place, std::uint32_t count);

 private:
  /// A record's index in its batch, and its position in bytes.
  struct Record {
    std::uint32_t index = 0;
    std::size_t position = batch_layout::header_bytes;
  };
  [[nodiscard]] ByteView record_of(const BatchView& batch, std::uint32_t index);
  [[nodiscard]] Record nearest(const BatchView& batch, std::uint32_t index);

  log::BatchLog& log_;
  log::ReadPosition at_;
  std::uint64_t batch_ = ~std::uint64_t{0};  // base offset of the batch that was read last
  Record last_;                              // of that batch
  // As many records from last_ on have this distance from one to the next.
  std::uint32_t equal_ = 0;
  std::size_t stride_ = 0;
  // By base offset: the positions of every `step`th record.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> positions_;
  std::size_t positions_kept_ = 0;
};

/// Keeps the messages of a schedule in memory. Those of a run are in one allocation, as records of a log. A
/// message's place is the address of that; its number tells which of them it is. Thread: one.
class MemoryBodies {
 public:
  /// An allocation. The records follow directly.
  struct Kept {
    Timestamp arrived;
    std::uint64_t number = 0;  ///< of the first message
    std::uint32_t bytes = 0;   ///< of each message
    std::uint32_t count = 0;   ///< of messages, also those that were dropped
    std::uint32_t left = 0;    ///< of messages
    AttributeKinds kinds;

    [[nodiscard]] std::size_t stride() const { return record_bytes(bytes); }
    [[nodiscard]] std::byte* records() { return reinterpret_cast<std::byte*>(this + 1); }
  };

  /// Allocates the records of the messages of `run`, apart from its place. Returns their place. The caller
  /// writes `run.count` records to `records_at(place)`. Throws std::bad_alloc; nothing has changed then.
  [[nodiscard]] static std::uint64_t add(const WaitingRun& run, AttributeKinds kinds, Timestamp arrived);
  [[nodiscard]] static std::byte* records_at(std::uint64_t place) { return at(place)->records(); }
  [[nodiscard]] static Kept* at(std::uint64_t place) {
    return reinterpret_cast<Kept*>(static_cast<std::uintptr_t>(place));
  }
  /// Notes that `count` messages are not needed any more. The last ones free the memory: then returns true.
  static bool drop(std::uint64_t place, std::uint32_t count);
  /// Returns the content of a run. Requires: it is there.
  [[nodiscard]] static DelayedBodies read(const WaitingRun& run);
};

/// Returns the message of a producer's record without its due time. Requires: `kinds` are the record's.
inline ByteView without_due(AttributeKinds kinds, ByteView message) {
  return kinds.has(AttributeKinds::dues) ? message.subspan(sizeof(std::int64_t)) : message;
}
inline AttributeKinds without_due(AttributeKinds kinds) {
  return AttributeKinds(static_cast<std::uint16_t>(kinds.bits() & ~AttributeKinds::dues));
}

}  // namespace lightq::broker
