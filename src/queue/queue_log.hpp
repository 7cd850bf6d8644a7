/// The log of an open queue, its settings, and the offsets that other threads see. Layer: queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <lightq/queue.hpp>

#include "log/segment/segment_pool.hpp"
#include "log/segment_log/segment_log.hpp"
#include "log/storage/storage.hpp"

namespace lightq::queue {

/// Opens the log of a queue, and publishes its first and durable offset to threads without the lock.
///
/// Owns the log and its pool of files. All parts of a queue use it. Thread: guarded by the queue's lock,
/// except for first_offset and durable_offset, which any thread may call, and the settings, which never
/// change.
///
/// Invariant: the published offsets are those of the log after each `note`. They lag behind while a thread
/// has the lock.
class QueueLog {
 public:
  /// Lifetime: `storage` must outlive this object.
  QueueLog(std::string directory, const QueueOptions& options, log::Storage& storage);

  /// Returns an error if a setting is out of its range.
  static Result<void> check(const QueueOptions& options);
  /// Opens the log. Errors: those of SegmentLog::open; foreign_format if a newer version has written the
  /// cursors.
  Result<void> open(log::SegmentViews& views);
  [[nodiscard]] bool is_open() const { return log_ != nullptr; }
  /// Returns the findings of opening the log.
  [[nodiscard]] QueueRecovery findings() const;

  [[nodiscard]] log::SegmentLog* operator->() { return log_.get(); }
  [[nodiscard]] const log::SegmentLog* operator->() const { return log_.get(); }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const QueueOptions& options() const { return options_; }
  /// Returns true if batches are written through a mapping, because nothing is synced by itself.
  [[nodiscard]] bool is_mapped() const { return mapped_; }
  [[nodiscard]] log::Storage& storage() { return storage_; }

  [[nodiscard]] Offset first_offset() const { return {first_.load(std::memory_order_acquire)}; }
  [[nodiscard]] Offset durable_offset() const { return {durable_.load(std::memory_order_acquire)}; }
  /// Publishes the offsets of the log. Returns true if messages were dropped since the last call.
  bool note();

 private:
  [[nodiscard]] log::SegmentLogOptions log_options(log::SegmentViews& views) const;

  const std::string directory_;
  const QueueOptions options_;
  const bool mapped_;
  log::Storage& storage_;
  log::SegmentPool pool_;
  std::unique_ptr<log::SegmentLog> log_;
  std::atomic<std::uint64_t> first_{0};
  std::atomic<std::uint64_t> durable_{0};
};

}  // namespace lightq::queue
