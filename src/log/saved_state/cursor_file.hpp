/// The cursor file of a topic: the names, offsets and unfinished messages of its consumer groups, on disk.
/// Layer: log. Byte by byte: docs/log_format.md, "Cursor file".
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/saved_state/slot_file.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::log {

struct NamedCursor {
  std::string name;  ///< at most 65,535 bytes
  Offset offset;     ///< every message before it is processed
  /// The messages from `offset` on that are delivered and unfinished. A plain cursor has none.
  Unfinished unfinished = {offset, {}};

  /// Returns true if the offset says all of the cursor: every message from it on is undelivered.
  [[nodiscard]] bool is_plain() const { return unfinished.is_plain(offset); }
  /// Returns the first message that was never delivered.
  [[nodiscard]] Offset next() const { return std::max(offset, unfinished.next); }
  /// Moves the offset back to `end` if it lies behind, and removes everything from `end` on from the
  /// unfinished messages. Returns true if that changed the cursor. Example: {offset 5, unfinished
  /// {[5, 8), [9, 12)}, next 12} cut at 10 is {offset 5, unfinished {[5, 8), [9, 10)}, next 10}.
  bool cut_at(Offset end);
  friend bool operator==(const NamedCursor& one, const NamedCursor& another) {
    return one.name == another.name && one.offset == another.offset &&
           ((one.is_plain() && another.is_plain()) || one.unfinished == another.unfinished);
  }
};

/// Returns the offset of the cursor with this name, or nothing if there is none.
[[nodiscard]] std::optional<Offset> offset_of_cursor(const std::vector<NamedCursor>& cursors,
                                                     std::string_view name);

/// Cursors in their stored form. One thread can encode them for another one that writes them.
struct EncodedCursors {
  SlotBytes slot;
};

/// Stores cursors in two files, `<name>.0` and `<name>.1`, which it writes in turn: a torn write leaves the
/// previous file intact. Thread: one at a time, except that `encode` may run while another thread is in
/// `write`.
class CursorFile {
 public:
  /// Touches no file before `load` or `write`. Lifetime: the storage must outlive this object.
  CursorFile(Storage& storage, std::string directory, const std::string& name = "cursors");

  /// Returns the newest sound cursors, or none if neither file exists. `unreadable` determines whether a file
  /// that cannot be read makes this fail or counts as damaged. If `older` is not null, it receives the
  /// cursors of the other file, provided that they are sound: until the next write, a power cut may restore
  /// them. Errors: corrupt or foreign_format if files exist and none is sound (so that damage never looks
  /// like "no cursors"); io_error.
  Result<std::vector<NamedCursor>> load(UnreadableSlot unreadable = UnreadableSlot::refuses,
                                        std::vector<NamedCursor>* older = nullptr);

  /// Returns why the last `load` or `write` ignored one of the files, or nothing if it ignored none.
  [[nodiscard]] const std::optional<Error>& passed_over() const { return slots_.passed_over(); }

  /// Returns the cursors in their stored form. Takes time for each run of their unfinished messages. Thread:
  /// any; the cursors may be copies whose sets share memory with sets that another thread changes.
  static EncodedCursors encode(const std::vector<NamedCursor>& cursors);
  /// Writes the cursors and syncs the file. After success the cursors survive a power cut. Calls `load` first
  /// if nothing was loaded yet. Errors: io_error, no_space, too_large (more than 128 MiB); the cursors
  /// written before are still on disk then.
  Result<void> write(EncodedCursors cursors);

 private:
  SlotFile slots_;
};

}  // namespace lightq::log
