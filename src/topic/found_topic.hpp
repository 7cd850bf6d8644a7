/// A topic as the start found it: its log, its cursors and its known producers. Layer: topic.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <lightq/base/random.hpp>
#include <lightq/base/result.hpp>

#include "delivery/producers/durable_producers.hpp"
#include "delivery/state/log_lives.hpp"
#include "log/carried/carried_log.hpp"
#include "log/memory/write_behind_log.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/segment_log/segment_log.hpp"
#include "store/topic_store.hpp"

namespace lightq::broker {

class DiskThread;
class EventLoop;

/// A durable topic's schedule of delayed messages, as it was found on disk or newly made. Move-only.
struct FoundSchedule {
  std::unique_ptr<log::SegmentLog> segments;
  std::unique_ptr<ProducerFile> producer_file;
  std::unique_ptr<log::CursorFile> cursor_file;  ///< never written: a schedule has no cursors
  std::unique_ptr<DurableProducers> producers;
  std::filesystem::path directory;
};

/// Opens a topic's schedule. Without files (a topic in memory) it returns null. Lifetime: what it refers to
/// outlives the topic. Errors: as for the topic's log.
using OpenSchedule = std::function<Result<std::unique_ptr<FoundSchedule>>(Timestamp now)>;

/// The name of the cursor before which everything has been purged, even if the files are not removed yet.
inline constexpr std::string_view purged_cursor_name = "purged:";

/// The name of the cursor before which no message has a time to live of its own: see TopicExpiry::mark.
inline constexpr std::string_view ttl_cursor_name = "ttl:";

/// A topic's log, cursors and known producers, as a start has opened them. Those of a durable topic are on
/// disk. Move-only. Thread: the reactor's.
struct FoundTopic {
  std::unique_ptr<log::Log> log;
  log::SegmentLog* segments = nullptr;  ///< the part of `log` that is on disk; null: a transient topic
  log::WriteBehindLog* write_behind = nullptr;   ///< the same object as `log`; null: not a queue_file topic
  std::unique_ptr<log::CarriedRecords> carried;  ///< of a transient topic; null: it keeps none
  std::unique_ptr<log::CarriedLog> carried_log;  ///< of a durable topic; null: a transient topic
  std::unique_ptr<log::CursorFile> cursor_file;  ///< null: a transient topic
  std::vector<log::NamedCursor> stored;          ///< the cursors found at the start, sorted by name
  std::unique_ptr<ProducerFile> producer_file;   ///< null: a transient topic
  std::unique_ptr<DurableProducers> producers;   ///< never null
  /// A transient topic gets a random incarnation at every start.
  LogLives lives{random_number<std::uint64_t>()};
  std::filesystem::path directory;          ///< empty: a transient topic
  OpenSchedule open_schedule;               ///< empty: the topic cannot have delayed messages
  std::unique_ptr<FoundSchedule> schedule;  ///< that the start has found; null: none

  /// Returns true if the start found the log closed or empty. Then its cursors on disk are durable, too.
  [[nodiscard]] bool was_closed() const;
  /// Returns the offset of a cursor that was found at the start, or nothing if there was none of this name.
  [[nodiscard]] std::optional<Offset> stored_cursor(std::string_view name) const;
  /// Returns the store of a topic at work. Requires: called once. Lifetime: `disk` and `loop` outlive the
  /// store.
  [[nodiscard]] std::unique_ptr<TopicStore> take_store(DiskThread& disk, EventLoop& loop);
};

}  // namespace lightq::broker
