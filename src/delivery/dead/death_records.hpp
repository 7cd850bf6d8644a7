/// The records of a group's dead messages, with copies that share memory. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/dead/dead_message.hpp"

namespace lightq::broker {

/// Maps offsets to records, in pieces of at most `piece_records_max` that ascend. A copy shares the pieces,
/// and costs time by their number. Afterwards both copy a piece before they change it for the first time.
/// Two neighbours have more than `merged_max` records together, so there are few pieces after removals too.
/// Thread: one uses an object at a time, and making a copy uses the original. A copy may be used and
/// destroyed on another thread.
class DeathRecords {
 public:
  using Record = std::shared_ptr<const DeathRecord>;
  static constexpr std::size_t piece_records_max = 128;
  static constexpr std::size_t merged_max = piece_records_max / 2;

  DeathRecords() = default;
  DeathRecords(const DeathRecords& other);
  DeathRecords& operator=(const DeathRecords&) = delete;
  ~DeathRecords() = default;

  /// Returns the number of records.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns the sum of the lengths of all reasons, in bytes.
  [[nodiscard]] std::size_t reason_bytes() const { return reason_bytes_; }
  /// Returns the number of pieces that a copy shares.
  [[nodiscard]] std::size_t pieces() const { return slots_.size(); }
  /// Returns the record of a message; null: it has none. Lifetime: until the next change.
  [[nodiscard]] const DeathRecord* find(Offset offset) const;
  /// Adds a record, which is not null. Has no effect if the message has one.
  void add(Offset offset, Record record);
  /// Removes the records of the messages in `range`. Returns how many.
  std::size_t remove(OffsetRange range);
  void clear();
  /// Calls `visit(offset, record)` for each record of `range`, in ascending order, until it returns false.
  template <typename Visit>
  void visit(OffsetRange range, Visit&& visit) const {
    for (std::size_t at = slot_of(range.begin); at < slots_.size(); ++at) {
      for (const Entry& entry : *slots_[at].piece) {
        if (entry.offset < range.begin) continue;
        if (range.end <= entry.offset || !visit(entry.offset, *entry.record)) return;
      }
    }
  }

 private:
  struct Entry {
    Offset offset;
    Record record;
  };
  using Piece = std::vector<Entry>;  // ascending, and not empty
  struct Slot {
    std::shared_ptr<Piece> piece;
    std::uint64_t made = 0;  // copies_ at that time; less: a copy may share the piece
  };

  [[nodiscard]] std::size_t slot_of(Offset offset) const;
  Piece& own(std::size_t at);
  void split(std::size_t at, bool at_end);
  void merge(std::size_t at);

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::size_t reason_bytes_ = 0;
  mutable std::uint64_t copies_ = 0;  // how often this object, or the one that it was copied from, was copied
};

}  // namespace lightq::broker
