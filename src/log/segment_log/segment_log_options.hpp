/// The settings of a segment log. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/limits.hpp>

#include "log/format/batch_cipher.hpp"
#include "log/format/segment_node.hpp"
#include "log/segment/decrypted_memory.hpp"
#include "log/segment/recovery.hpp"

namespace lightq::log {

struct SegmentLogOptions {
  std::string directory;  ///< owned by this log alone; created at the first append
  std::uint64_t segment_bytes = limits::segment_bytes_default;
  /// File size of the first segment. Each later one is four times as large as the one before, up to 1 MiB,
  /// then twice as large, up to `segment_bytes`.
  std::uint64_t first_segment_bytes = 1 * limits::MiB;
  std::uint64_t segment_messages_max = 0;  ///< limit for one segment; 0: as many as fit
  std::uint64_t capacity_bytes = 0;        ///< limit for stored_bytes; 0: only the disk limits it
  std::uint64_t capacity_messages = 0;     ///< limit for the number of messages; 0: none
  std::uint64_t retention_bytes = 0;       ///< at least this many of the newest bytes are kept; 0: all
  std::int64_t retention_ms = 0;           ///< messages are kept at least this long; 0: without a limit
  std::uint64_t retention_messages = 0;    ///< at least this many of the newest messages are kept; 0: all
  std::int64_t flush_interval_ms = 100;    ///< 0: nothing is synced by time
  std::uint64_t disk_free_floor_bytes = 0;
  bool leaves_others_room = true;  ///< SpaceWanted::leaves_room of each new segment
  std::uint64_t flush_bytes = 0;   ///< a sync is due once this many bytes are not durable; 0: not by size
  /// Batches are stored into a mapping of the file instead of written. Faster, unless syncs are frequent.
  bool mapped_writes = false;
  /// With mapped_writes: a disk job maps the next segment's file and makes its pages present. The segment
  /// begins under the name of a prepared file, and the next job renames it.
  bool prefault = false;
  /// The time between two jobs that retire segments. Dropped segments wait for it, so that one job retires
  /// several. They wait less if other work is due, or if there are many of them (16, or as many as the pool
  /// keeps if that is fewer).
  std::int64_t retire_gather_us = 0;
  /// Provides views for readers on other threads, for which the log then keeps its chain of SegmentNodes.
  /// Null: there are no such readers. Lifetime: must outlive the log.
  SegmentViews* views = nullptr;
  /// Encrypts batches on disk; batches in clear are then not delivered. Null: no encryption. Not with
  /// mapped_writes or views. Lifetime: must outlive the log.
  const BatchCiphers* ciphers = nullptr;
  /// The id that the log should have. Files of a log with another id are not opened.
  ExpectedLog expected = {};
  /// Memory for decrypted batches, shared with other logs. Null: the log has its own. Lifetime: must outlive
  /// the log.
  DecryptedMemory* decrypted = nullptr;
};

}  // namespace lightq::log
