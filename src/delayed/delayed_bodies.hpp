/// The content of delayed messages: in a log, or in memory. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

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
  DelayedBody read(std::uint64_t place);

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
  // By base offset: the positions of every `step`th record.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> positions_;
  std::size_t positions_kept_ = 0;
};

/// Keeps the messages of a schedule in memory, each in an allocation of its own. A message's place is its
/// address. Thread: one.
class MemoryBodies {
 public:
  MemoryBodies() = default;
  MemoryBodies(MemoryBodies&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
  MemoryBodies& operator=(MemoryBodies&&) = delete;
  ~MemoryBodies() {
    while (first_ != nullptr) drop(reinterpret_cast<std::uintptr_t>(first_));
  }

  /// Returns the message's place. Throws std::bad_alloc; nothing has changed then.
  std::uint64_t add(AttributeKinds kinds, Timestamp arrived, ByteView message);
  /// Requires: the message is there.
  void drop(std::uint64_t place);
  /// Requires: the message is there.
  [[nodiscard]] static DelayedBody read(std::uint64_t place) {
    const auto* const body = reinterpret_cast<const Body*>(static_cast<std::uintptr_t>(place));
    return {DelayedBody::Outcome::found, body->kinds, body->arrived, {body->message(), body->bytes}};
  }

 private:
  /// The message follows directly.
  struct Body {
    Body* next = nullptr;
    Body* previous = nullptr;
    Timestamp arrived;
    std::uint32_t bytes = 0;
    AttributeKinds kinds;
    [[nodiscard]] const std::byte* message() const { return reinterpret_cast<const std::byte*>(this + 1); }
  };
  Body* first_ = nullptr;
};

/// Returns the message of a producer's record without its due time. Requires: `kinds` are the record's.
inline ByteView without_due(AttributeKinds kinds, ByteView message) {
  return kinds.has(AttributeKinds::dues) ? message.subspan(sizeof(std::int64_t)) : message;
}
inline AttributeKinds without_due(AttributeKinds kinds) {
  return AttributeKinds(static_cast<std::uint16_t>(kinds.bits() & ~AttributeKinds::dues));
}

}  // namespace lightq::broker
