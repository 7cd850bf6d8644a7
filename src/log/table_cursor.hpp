/// One cursor of a CursorTable: committing is a handful of stores to mapped memory. Layer: log.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/types.hpp>

#include "log/cursor_table_format.hpp"

namespace lightq::log {

/// Where a named cursor stands. A commit survives the process at once, and a power cut after the table's next
/// flush. One thread commits and notes; any thread asks. Lives as long as its table; not to be used once the
/// cursor has been removed.
class TableCursor {
 public:
  TableCursor() = default;
  TableCursor(const TableCursor&) = delete;
  TableCursor& operator=(const TableCursor&) = delete;

  /// Everything before `offset` is done with. It may be lower than before: what counts is which commit came
  /// last.
  void commit(Offset offset) {
    const std::uint64_t sequence = published_.load(std::memory_order_relaxed) + 1;
    static_assert(cursor_copy_at_sequence == 0 && cursor_copy_at_committed == 8 &&
                  cursor_copy_checked_bytes == 16);
    const std::uint32_t crc = crc32c_of_words(sequence, offset.value, seed_);
    // Into the copy that is not the newest. Released, so that no store of a commit passes one of the commit
    // before: at every moment one of the two copies is whole, whenever the process dies.
    std::byte* copy = live_ + (sequence & 1) * cursor_copy_bytes;
    store(copy + cursor_copy_at_sequence, sequence);
    store(copy + cursor_copy_at_committed, offset.value);
    store(copy + cursor_copy_at_crc, crc);
    recent_[sequence % recent_.size()].store(offset.value, std::memory_order_release);
    published_.store(sequence, std::memory_order_release);
  }

  /// The reader has been given everything before `offset`. Survives the process; not a power cut for sure.
  void note_delivered(Offset offset) {
    store(live_ + cursor_delivered_position, offset.value);
    store(live_ + cursor_delivered_position + 8, ~offset.value);
    delivered_.store(offset.value, std::memory_order_release);
  }

  [[nodiscard]] Offset committed() const { return last().committed; }
  /// What was noted last, but never less than what is committed.
  [[nodiscard]] Offset delivered() const {
    return std::max(Offset{delivered_.load(std::memory_order_acquire)}, committed());
  }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The last commit. Any thread; tries again only while its thread makes several commits at once.
  [[nodiscard]] CursorCopy last() const {
    for (;;) {
      const std::uint64_t sequence = published_.load(std::memory_order_acquire);
      const std::uint64_t offset = recent_[sequence % recent_.size()].load(std::memory_order_acquire);
      // The place is written again recent_.size() commits later, after all those in between were published.
      const std::uint64_t after = published_.load(std::memory_order_relaxed);
      if (after - sequence < recent_.size() - 1) return {sequence, {offset}};
    }
  }

 private:
  friend class CursorTable;

  /// Begins a life: the block's live sector, what its copies' checksums begin with, and where it stands.
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
  // What other threads read, in one cache line: never the mapped page, which may wait for the disk.
  alignas(64) std::atomic<std::uint64_t> published_ = 0;  // the last commit's sequence
  std::array<std::atomic<std::uint64_t>, 4> recent_{};    // committed offsets, by sequence
  std::atomic<std::uint64_t> delivered_ = 0;
};

}  // namespace lightq::log
