/// Makes a snapshot: a copy of a log's current state, also while another process writes the log.
/// docs/log_format.md, "Broken disks". Layer: tools.
#pragma once

#include <cstdint>
#include <string>

#include "log/storage/storage.hpp"

namespace lightq::log {

/// The contents of a snapshot.
struct SnapshotReport {
  std::size_t segments = 0;
  std::size_t linked = 0;  ///< of `segments`: those that share their bytes with the log
  std::uint64_t copied_bytes = 0;
  Offset first_offset;
  Offset next_offset;
  std::size_t damages = 0;  ///< damaged ranges in the copied files; the log has the same ones
};

/// Makes a snapshot of the log in `directory` at `output`. Sealed segments get a second name, or are copied
/// if the file system cannot link; others are copied up to the last complete batch. The newest cursors are
/// copied, too, and carried messages, whose damages and bytes are counted. The copy is marked as restored
/// (mark_restored). Everything is synced under a temporary name, then renamed to `output`. Writes nothing in
/// `directory`; its writer may continue. Requires: `output` does not exist. Errors: no_space; io_error, also
/// if `directory` does not exist or disappears meanwhile; foreign_format (a newer version wrote the log);
/// busy (the log dropped its segments faster than they could be copied). After an error no new file stays.
Result<SnapshotReport> snapshot_log(const std::string& directory, const std::string& output,
                                    Storage& storage);

/// Makes a snapshot of a topic's log as snapshot_log does, and of its delayed messages (the directory
/// `delayed`), if there are any. These are copied before the log: a message that leaves meanwhile is then in
/// both copies, and never in none. Both get the name `output` at once. Counts the damages and the copied
/// bytes of both. Errors: as for snapshot_log.
Result<SnapshotReport> snapshot_topic(const std::string& directory, const std::string& output,
                                      Storage& storage);

/// A snapshot in two steps, for a backup of many topics. Messages and letters pass from one topic to another,
/// and the state of a topic says which have arrived elsewhere. So the state of all topics is copied before
/// the log of any: then no state is ahead of a log. Thread: one.
class TopicCopy {
 public:
  enum class Extent {
    log,                   ///< as snapshot_log
    topic,                 ///< as snapshot_topic
    topic_with_producers,  ///< also the producers that the topic knows, unless it has a schedule
  };

  /// Touches no file. The parameters are those of snapshot_log. Lifetime: the storage outlives this object.
  TopicCopy(std::string directory, std::string output, Storage& storage);
  TopicCopy(const TopicCopy&) = delete;
  TopicCopy& operator=(const TopicCopy&) = delete;
  /// Removes an unfinished copy.
  ~TopicCopy();

  /// Copies the cursors, with the state of groups. Called first. Errors: as for snapshot_log.
  Result<void> take_state();
  /// Copies everything else, and gives the copy its name. Errors: as for snapshot_log.
  Result<SnapshotReport> take_log(Extent extent);

 private:
  Result<void> finish();

  const std::string directory_;
  const std::string output_;
  std::string path_;
  Storage& storage_;
  bool is_finished_ = false;
};

}  // namespace lightq::log
