/// Where a topic's groups stand, on disk: names, offsets, and what is acknowledged. Layer: log. Byte by byte:
/// docs/log_format.md, "Cursor file".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/slot_file.hpp"

namespace lightq::log {

struct NamedCursor {
  std::string name;  ///< at most 65,535 bytes
  Offset offset;     ///< everything before it is done with
  /// What is done with besides: ascending, not touching each other nor `offset`. Of more than
  /// `limits::acknowledged_ranges_max` the lowest are written.
  std::vector<OffsetRange> acknowledged = {};

  /// Nothing of it lies at or behind `end` afterwards, but perhaps the offset at it. True: something did.
  bool cut_at(Offset end);
  friend bool operator==(const NamedCursor&, const NamedCursor&) = default;
};

/// Cursors ready to be written, made on one thread for another.
struct EncodedCursors {
  SlotBytes slot;
};

/// Two files, `<name>.0` and `<name>.1`, written in turn: a write that is torn leaves the one before it. Not
/// for two threads at once; `encode` may be called while another thread is in `write`.
class CursorFile {
 public:
  /// Nothing is touched before load or write. The storage must outlive it.
  CursorFile(Storage& storage, std::string directory, const std::string& name = "cursors");

  /// The newest cursors that are sound; none if neither file exists. Errors: corrupt or foreign_format if
  /// there are files and none is sound (so that nobody takes that for "no cursors"), io_error.
  /// `older`, if not null, gets those of the other file, if it is sound: a power cut may bring them back
  /// until the next write.
  Result<std::vector<NamedCursor>> load(UnreadableSlot unreadable = UnreadableSlot::refuses,
                                        std::vector<NamedCursor>* older = nullptr);

  /// What load or write would not believe: the file passed over by the last load, and why. Nothing if all was
  /// well.
  [[nodiscard]] const std::optional<Error>& passed_over() const { return slots_.passed_over(); }

  static EncodedCursors encode(const std::vector<NamedCursor>& cursors);
  /// Writes and syncs; when it returns without error, the cursors survive a power cut. Loads first if nobody
  /// did. Errors: io_error, no_space; the cursors written before are still there then.
  Result<void> write(EncodedCursors cursors);

 private:
  SlotFile slots_;
};

}  // namespace lightq::log
