/// Two small files that are written in turn, so that a torn write leaves the previous content. Layer: log.
/// docs/log_format.md, "Slot files".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/storage/storage.hpp"

namespace lightq::log {

/// The bytes of one slot: a header, then the body.
struct SlotBytes {
  static constexpr std::size_t header_bytes = 32;

  std::vector<std::byte> bytes;

  [[nodiscard]] ByteView body() const { return ByteView(bytes).subspan(header_bytes); }
  [[nodiscard]] std::byte* body() { return bytes.data() + header_bytes; }
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] std::uint32_t version() const;
};

/// The kind of content that a pair of slots has, and how it is recognized.
struct SlotFormat {
  std::string_view what;  ///< for error texts: "cursor file"
  std::uint64_t magic = 0;
  std::uint32_t version = 0;         ///< the newest version; older ones, from 1 on, are read too
  std::uint64_t file_bytes_max = 0;  ///< no more is ever read
  /// Returns true if the body has exactly `count()` entries of its version, with possible values. Called only
  /// for slots with a right checksum, cut to the length in their header.
  bool (*sound)(const SlotBytes& slot) = nullptr;
};

/// How `load` treats a slot that cannot be read now.
enum class UnreadableSlot {
  refuses,     ///< load fails, because that slot may be the newer one
  is_damaged,  ///< load uses the other slot; for a repair
};

/// The files `<name>.0` and `<name>.1`. The newer sound one is the current content. Thread: one at a time,
/// except that `make` may be called during `write`.
class SlotFile {
 public:
  /// Accesses no file before `load` or `write`. Lifetime: the storage must outlive this object.
  SlotFile(Storage& storage, std::string directory, std::string name, const SlotFormat& format);

  /// Returns the newest sound slot; nothing if neither file exists. `older`, if not null, gets the content of
  /// the other file, if that is sound. Errors: corrupt or foreign_format if no existing file is sound, or if
  /// one is of a newer version, each with file and position; io_error.
  Result<std::optional<SlotBytes>> load(UnreadableSlot unreadable = UnreadableSlot::refuses,
                                        std::optional<SlotBytes>* older = nullptr);
  /// Returns why the last `load` did not use one of the files; nothing if both were sound or missing.
  [[nodiscard]] const std::optional<Error>& passed_over() const { return passed_over_; }
  /// Returns the names of the files that were unsound in the last `load`. A file of a newer version is not
  /// among them, because `load` stops there.
  [[nodiscard]] const std::vector<std::string>& unsound() const { return unsound_; }
  /// Returns true if the last load failed because a newer version wrote one of the files.
  [[nodiscard]] bool newer_found() const { return newer_found_; }

  /// Returns a slot with a header for `count` entries and a body of `body_bytes` zeros, to be filled in. More
  /// bytes may be appended.
  /// `version`: one of the format's versions.
  static SlotBytes make(const SlotFormat& format, std::uint32_t version, std::size_t body_bytes,
                        std::uint32_t count);
  /// Writes and syncs the slot: after success it survives a power cut. Calls `load` first if nobody has.
  /// Errors: io_error, no_space; the previous content stays then. foreign_format if a newer version wrote one
  /// of the files.
  Result<void> write(SlotBytes slot);
  /// Removes both files, and makes that survive a power cut.
  Result<void> remove();

 private:
  struct Slot;
  [[nodiscard]] std::string slot_path(int slot) const;
  Result<Slot> read_slot(int slot, UnreadableSlot unreadable);
  [[nodiscard]] bool is_newer(const SlotBytes& slot) const;
  [[nodiscard]] std::optional<Error> fault_of(const std::string& path, SlotBytes& slot) const;
  Result<void> write_slot(int slot, ByteView bytes);
  Result<void> keep_newest();

  Storage& storage_;
  std::string directory_;
  std::string name_;
  SlotFormat format_;
  std::optional<Error> passed_over_;
  std::vector<std::string> unsound_;
  bool loaded_ = false;
  bool newer_found_ = false;             // set by the last load
  int newest_slot_ = 1;                  // the other one is written next
  bool newest_synced_ = false;           // this object has synced the newest slot
  bool slot_named_[2] = {false, false};  // the slot's file name is on disk
  std::uint64_t sequence_ = 0;
};

}  // namespace lightq::log
