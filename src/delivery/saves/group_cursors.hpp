/// The part of a topic's groups that is saved on disk. Layer: delivery.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/consumer_groups.hpp"
#include "delivery/snapshot/group_snapshot.hpp"
#include "delivery/state/group_time.hpp"
#include "log/saved_state/cursor_file.hpp"

namespace lightq::broker {

/// The cursors of a topic at one moment. Taking them costs time by the number of groups and of their sets;
/// `finished` does the work that takes time by the number of ranges. A value that any thread may use and
/// destroy.
struct CursorsSnapshot {
  struct Group {
    std::string name;  ///< of the cursor
    GroupSnapshot state;
  };
  std::vector<log::NamedCursor> plain;  ///< with no more than an offset
  std::vector<Group> groups;

  /// Returns the cursors in the form in which they are stored, sorted by name. Call it on the encoding
  /// thread.
  [[nodiscard]] std::vector<log::NamedCursor> finished() const;
};

/// Restores a topic's groups from their cursors, and takes snapshots of them in pieces: `begin`, then
/// `collect` until it returns true, then `take`. Groups without a name are not saved. A paused group has a
/// second cursor. docs/log_format.md, "Cursor file", gives the names. Thread: the
/// reactor's. Lifetime: the groups outlive it.
class GroupCursors {
 public:
  explicit GroupCursors(ConsumerGroups& groups) : groups_(groups) {}

  /// Returns true if a group has a cursor of this name, a pause, or a mark of letters that were given back.
  [[nodiscard]] static bool is_of_group(const std::string& cursor_name);
  /// Restores groups from stored cursors, in any order: their messages, cut at `log_end`, and their pause.
  /// Ignores other stored cursors. `clocks`: read for restoring. Requires: no consumer has joined yet.
  void restore(const std::vector<log::NamedCursor>& stored, Offset log_end, const ClockReading& clocks);

  /// Returns true if the groups are not as they were at the last `begin`, or as `restore` has found them.
  /// Takes constant time for each group and plain consumer.
  [[nodiscard]] bool changed() const;
  /// Begins a snapshot of the present groups. Forgets one that is not complete.
  void begin();
  /// Continues the snapshot: visits about `ranges_max` ranges in flight. Returns true when it is complete.
  /// `clocks`: read for storing, at this call.
  bool collect(std::size_t ranges_max, const ClockReading& clocks);
  /// Returns the complete snapshot. Requires: `collect` has returned true.
  CursorsSnapshot take();

 private:
  /// A group in a snapshot, without its messages.
  struct Known {
    std::string cursor_name;
    bool paused = false;
    GroupVersion version;
    friend bool operator==(const Known&, const Known&) = default;
  };

  [[nodiscard]] bool restore_cursor(const log::NamedCursor& stored, Offset log_end,
                                    const ClockReading& clocks);
  [[nodiscard]] std::vector<Known> present() const;

  ConsumerGroups& groups_;
  std::vector<Known> known_;       // at the last begin()
  std::vector<std::string> left_;  // names of the groups to collect, the next one last
  CursorsSnapshot snapshot_;
};

}  // namespace lightq::broker
