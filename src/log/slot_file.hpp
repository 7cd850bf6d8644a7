/// Two small files written in turn, so that a torn write leaves what was there before. Layer: log.
/// docs/log_format.md, "Slot files".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/storage.hpp"

namespace lightq::log {

/// Bytes of one slot: a header, then the body.
struct SlotBytes {
  static constexpr std::size_t header_bytes = 32;

  std::vector<std::byte> bytes;

  [[nodiscard]] ByteView body() const { return ByteView(bytes).subspan(header_bytes); }
  [[nodiscard]] std::byte* body() { return bytes.data() + header_bytes; }
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] std::uint32_t version() const;
};

/// What is kept in a pair of slots, and how its bytes are known.
struct SlotFormat {
  std::string_view what;  ///< for people: "cursor file"
  std::uint64_t magic = 0;
  std::uint32_t version = 0;         ///< the newest; the ones before it, from 1 on, are read too
  std::uint64_t file_bytes_max = 0;  ///< no more is ever read
  /// The body holds exactly `count()` entries of its version, and everything about them that can be seen is
  /// as it should be. Asked only for slots whose checksum fits, cut to what they say they have.
  bool (*sound)(const SlotBytes& slot) = nullptr;
};

/// What a copy that cannot be read now means to who loads the other.
enum class UnreadableSlot {
  refuses,     ///< load fails: it may be the newer one
  is_damaged,  ///< the other one counts: for a repair
};

/// The files `<name>.0` and `<name>.1`. Not for two threads at once; `make` may be called while another
/// thread is in `write`.
class SlotFile {
 public:
  /// Nothing is touched before load or write. The storage must outlive it.
  SlotFile(Storage& storage, std::string directory, std::string name, const SlotFormat& format);

  /// The newest slot that is sound; nothing if neither file exists. Errors: corrupt or foreign_format if
  /// there are files and none is sound, or one is of a newer version, each with file and position; io_error.
  /// `older`, if not null, gets what the other file has, if that is sound.
  Result<std::optional<SlotBytes>> load(UnreadableSlot unreadable = UnreadableSlot::refuses,
                                        std::optional<SlotBytes>* older = nullptr);
  /// What load or write would not believe: the file passed over by the last load, and why. Nothing if all was
  /// well.
  [[nodiscard]] const std::optional<Error>& passed_over() const { return passed_over_; }
  /// Names of the files that the last load would not believe. Not of a newer version's: there it stops.
  [[nodiscard]] const std::vector<std::string>& unsound() const { return unsound_; }
  /// The last load failed because a newer version wrote one of the files.
  [[nodiscard]] bool newer_found() const { return newer_found_; }

  /// A header for `count` entries and room for a body of so many bytes, zeros, to be filled in.
  /// `version`: one of the format's.
  static SlotBytes make(const SlotFormat& format, std::uint32_t version, std::size_t body_bytes,
                        std::uint32_t count);
  /// Writes and syncs; when it returns without error, it survives a power cut. Loads first if nobody did.
  /// Errors: io_error, no_space; what was written before is still there then.
  Result<void> write(SlotBytes slot);
  /// Neither file is there afterwards, nor after a power cut.
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
  bool newer_found_ = false;             // by the last load
  int newest_slot_ = 1;                  // the other one is written next
  bool newest_synced_ = false;           // by this object
  bool slot_named_[2] = {false, false};  // its name is on disk
  std::uint64_t sequence_ = 0;
};

}  // namespace lightq::log
