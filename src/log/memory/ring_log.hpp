/// A transient log: batches in a ring of memory. Layer: log.
#pragma once

#include <cstdint>
#include <memory>

#include "log/drop_guard.hpp"
#include "log/format/sparse_index.hpp"
#include "log/log.hpp"
#include "log/memory/ring_space.hpp"
#include "log/storage/mapped_memory.hpp"

namespace lightq::log {

struct RingLogOptions {
  /// Address space of the ring, rounded up to whole pages. It takes memory only where batches were written. A
  /// batch longer than this cannot be appended.
  std::uint64_t capacity_bytes = limits::ring_bytes_default;
  /// An append is accepted if the log is empty, or if all batches together stay within this limit; 0 means
  /// the capacity. So a small ring can still take one huge batch.
  std::uint64_t soft_limit_bytes = 0;
  /// The ring starts again at its beginning, although there is space further on, if the free space there has
  /// at least this many bytes, and at least the batch plus twice the stored bytes. The memory in use then
  /// stays small enough for the processor's caches.
  std::uint64_t reuse_from_bytes = 16 * limits::KiB;
  Offset first_offset = {};  ///< of the first message ever appended
};

/// A ring of batches in memory. RingSpace places each batch contiguously, behind the previous one, or from
/// the memory's beginning again. Never returns `damaged` or `no_space`; durable_offset is always 0. Thread:
/// one at a time.
class RingLog final : public Log {
 public:
  explicit RingLog(const RingLogOptions& options);

  AppendResult append(std::span<std::byte> batch, Timestamp now) override;
  std::span<std::byte> place_for_next(std::size_t bytes) override;
  void fetch_ahead_for_append(unsigned step) const override;
  ReadResult read(ReadPosition& place) override;
  FoundByTime first_since(Timestamp time) override;
  [[nodiscard]] Offset first_offset() const override { return first_; }
  [[nodiscard]] Offset next_offset() const override { return next_; }
  [[nodiscard]] Offset durable_offset() const override { return {}; }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return stored_bytes_; }
  void trim(Offset before) override;
  bool make_room(std::size_t bytes, Offset limit) override;
  void guard_drops(DropGuard* guard) override { guard_ = guard; }
  /// Drops the oldest batch.
  bool drop_first(Offset limit, std::size_t bytes) override;
  void maintain(Timestamp now) override;
  std::unique_ptr<DiskJob> take_disk_job(Timestamp now) override;
  [[nodiscard]] bool wants_disk_work() const override { return false; }
  Result<void> flush() override { return {}; }
  [[nodiscard]] const Error& last_error() const override { return last_error_; }

  /// Continues at another offset. Requires: the ring is empty.
  void restart_at(Offset next);
  /// Returns the bytes of a batch that this ring's `read` returned, so that its header can be stamped again.
  static std::span<std::byte> writable(const BatchView& batch);
  /// Returns whether this ring can ever take a batch of `bytes`.
  [[nodiscard]] bool can_hold(std::size_t bytes) const { return bytes <= capacity_; }

 private:
  [[nodiscard]] bool empty() const { return first_ == next_; }
  [[nodiscard]] bool accepts(std::size_t bytes) const;
  /// Returns true if there are offsets for any batch, however many records it has. A SegmentLog has the same
  /// rule.
  [[nodiscard]] bool has_offsets() const {
    return next_.value <= limits::offset_max - limits::batch_records_max;
  }
  bool map();
  [[nodiscard]] BatchView batch_at(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t locate(const ReadPosition& place) const;
  [[nodiscard]] std::uint64_t search(Offset offset) const;
  void drop_oldest();

  std::uint64_t capacity_;
  std::uint64_t soft_limit_;
  RingSpace space_;
  MappedMemory memory_;
  SparseIndex index_;
  Offset first_;
  Offset next_;
  std::uint64_t newest_ = 0;  // position of the newest batch, which begins at newest_offset_
  Offset newest_offset_;
  std::uint64_t stored_bytes_ = 0;
  Timestamp last_append_;
  bool touched_ = false;  // pages may be resident
  DropGuard* guard_ = nullptr;
  Error last_error_;
};

}  // namespace lightq::log
