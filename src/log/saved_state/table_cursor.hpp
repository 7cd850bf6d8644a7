/// One cursor of a CursorTable. A commit takes only a few stores to mapped memory. Layer: log.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/types.hpp>

#include "log/saved_state/cursor_table_format.hpp"

namespace lightq::log {

/// A named cursor. A commit survives the end of the process immediately, and a power cut after the table's
/// next flush. Thread: one commits and notes, any reads. Lifetime: as long as its table. Requires: the cursor
/// is not used after it was removed.
class TableCursor {
 public:
  TableCursor() = default;
  TableCursor(const TableCursor&) = delete;
  TableCursor& operator=(const TableCursor&) = delete;

  /// Commits: everything before `offset` has been processed. It may be lower than before, because the last
  /// commit counts.
  void commit(Offset offset) {
    const std::uint64_t sequence = published_.load(std::memory_order_relaxed) + 1;
    static_assert(cursor_copy_at_sequence == 0 && cursor_copy_at_committed == 8 &&
                  cursor_copy_checked_bytes == 16);
    const std::uint32_t crc = crc32c_of_words(sequence, offset.value, seed_);
    // Writes into the older of the two copies. Release order keeps each store behind those of the commit
    // before. So one copy is complete at any moment at which the process may die.
    std::byte* copy = live_ + (sequence & 1) * cursor_copy_bytes;
    store(copy + cursor_copy_at_sequence, sequence);
    store(copy + cursor_copy_at_committed, offset.value);
    store(copy + cursor_copy_at_crc, crc);
    recent_[sequence % recent_.size()].store(offset.value, std::memory_order_release);
    published_.store(sequence, std::memory_order_release);
  }

  /// Notes that everything before `offset` was delivered to the reader. Survives the process, but not always
  /// a power cut.
  void note_delivered(Offset offset) {
    store(live_ + cursor_delivered_position, offset.value);
    store(live_ + cursor_delivered_position + 8, ~offset.value);
    delivered_.store(offset.value, std::memory_order_release);
  }

  [[nodiscard]] Offset committed() const { return last().committed; }
  /// Returns the offset noted last, but at least the committed one.
  [[nodiscard]] Offset delivered() const {
    return std::max(Offset{delivered_.load(std::memory_order_acquire)}, committed());
  }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns the last commit. Thread: any; retries only if several commits are made during the call.
  [[nodiscard]] CursorCopy last() const {
    for (;;) {
      const std::uint64_t sequence = published_.load(std::memory_order_acquire);
      const std::uint64_t offset = recent_[sequence % recent_.size()].load(std::memory_order_acquire);
      // The array element is overwritten recent_.size() commits later, after all commits between were
      // published.
      const std::uint64_t after = published_.load(std::memory_order_relaxed);
      if (after - sequence < recent_.size() - 1) return {sequence, {offset}};
    }
  }

 private:
  friend class CursorTable;

  /// Starts using a block of the table: its live sector, the initial value of its copies' checksums, and the
  /// position.
  void begin(std::byte* live, std::uint32_t seed, std::string name, const CursorCopy& last,
             Offset delivered) {
    live_ = live;
    seed_ = seed;
    name_ = std::move(name);
    delivered_.store(delivered.value, std::memory_order_release);
    recent_[last.sequence % recent_.size()].store(last.committed.value, std::memory_order_release);
    published_.store(last.sequence, std::memory_order_release);
  }

  template <typename T>
  static void store(std::byte* to, T value) {
    static_assert(std::endian::native == std::endian::little, "a big-endian port needs byte swaps here");
    std::atomic_ref<T>(*reinterpret_cast<T*>(to)).store(value, std::memory_order_release);
  }

  std::byte* live_ = nullptr;
  std::uint32_t seed_ = 0;
  std::string name_;
  // Read by other threads, all in one cache line. They never read the mapped page, which may wait for the
  // disk.
  alignas(64) std::atomic<std::uint64_t> published_ = 0;  // sequence of the last commit
  std::array<std::atomic<std::uint64_t>, 4> recent_{};    // committed offsets, by sequence
  std::atomic<std::uint64_t> delivered_ = 0;
};

}  // namespace lightq::log
