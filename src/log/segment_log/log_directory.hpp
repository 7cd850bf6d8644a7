/// The directory of a segment log, and which of its changes are on disk. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "log/format/unnamed_segment.hpp"
#include "log/segment_log/segment_job.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// Makes a log's directory at the first append, names its segments, and counts the changes that a sync of the
/// directory has to cover.
///
/// Owns the pending name of the active segment. Called by the roller, which begins segments, and by the parts
/// that sync. Thread: the log's; a disk job may give the pending name meanwhile.
///
/// Invariant: the names of all segments are on disk if is_synced(). At most one segment is without its name,
/// and that is the active one.
class LogDirectory {
 public:
  /// `exists`: an earlier process has left segments in it. `synced`: they are known to be on disk.
  LogDirectory(const std::string& path, Storage& storage, bool exists, bool synced)
      : path_(path),
        storage_(storage),
        made_(exists),
        parent_unsynced_(exists),  // the process that made it may have been killed before its sync
        rolls_(exists ? 1 : 0),
        synced_rolls_(exists && synced ? 1 : 0) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  /// Creates the directory unless it is there. Errors: io_error.
  Result<void> make();
  /// Returns true if the directory was there when the log was opened, or was created since.
  [[nodiscard]] bool is_made() const { return made_; }
  /// Removes the directory and all files in it. Errors: io_error.
  Result<void> remove();

  /// Returns how many segments were begun, with one added if the log was not empty when it was opened. Each
  /// changes the directory, so the number identifies the directory's state.
  [[nodiscard]] std::uint64_t rolls() const { return rolls_; }
  void note_roll() { ++rolls_; }
  [[nodiscard]] bool is_synced() const { return synced_rolls_ == rolls_; }

  /// Leaves the rename of the active segment's file to the next job.
  void name_later(const std::string& from, const std::string& to) {
    name_ = std::make_shared<PendingName>(from, to);
  }
  /// Renames the active segment's file if no disk job has done so yet. Called before the next segment begins,
  /// because only one may be without its name. Errors: io_error.
  Result<void> give_name() { return name_ != nullptr ? name_->give(storage_) : Result<void>{}; }
  [[nodiscard]] bool lacks_name() const { return name_ != nullptr && !name_->is_given(); }

  /// Returns work that gives the pending name, and does nothing else yet.
  [[nodiscard]] SegmentWork new_work() const;
  /// Adds the sync of all unsynced names to `work`.
  void add_syncs(SegmentWork& work) const;
  /// Notes that the directories of `work` were synced.
  void note_synced(const SegmentWork& work);

 private:
  const std::string& path_;
  Storage& storage_;
  bool made_;
  bool parent_unsynced_;        // the directory's own name is not on disk yet
  std::uint64_t rolls_;         // changes of the directory
  std::uint64_t synced_rolls_;  // the value of rolls_ that the last sync of the directory covered
  // The pending rename of the active segment, if that was begun without a name; a job may have done it
  // meanwhile.
  std::shared_ptr<PendingName> name_;
};

}  // namespace lightq::log
