/// The first page of a segment file: its header, the checkpoints made while it is being written, and its seal
/// once it is full. Layer: log. docs/log_format.md, "Segment file", specifies every byte.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::log {

/// Length of the header. It takes the whole first page, so that no batch ever shares a page with it.
inline constexpr std::size_t segment_header_bytes = 4096;
/// Returns the length of the smallest file that has space for `bytes`: `bytes` rounded up to a whole page.
constexpr std::uint64_t round_up_to_page(std::uint64_t bytes) {
  return (bytes + segment_header_bytes - 1) / segment_header_bytes * segment_header_bytes;
}
/// The prefix of the directories in which repairs in place keep the old files.
inline constexpr const char* damaged_prefix = "damaged-";
/// The smallest file: the header and one page of batches.
inline constexpr std::uint64_t segment_file_bytes_min = 2 * segment_header_bytes;
inline constexpr std::uint32_t segment_format_version = 1;
/// Format version of a segment with encrypted batches. Programs from before encryption refuse it.
inline constexpr std::uint32_t encrypted_format_version = 2;
/// SegmentHeader::first_offset of a header that was written before the offset was known. The file's name has
/// it.
inline constexpr Offset offset_not_yet_known{~std::uint64_t{0}};

/// Each use of a file has a new epoch. A log may use a file repeatedly without a sync until the epoch is a
/// multiple of this number; see docs/log_format.md, "Epochs, and the pool".
inline constexpr std::uint32_t epochs_unsynced_max = 0x10000;

/// SegmentHeader::key_id after a repair that found encrypted batches under a damaged header: the key id is
/// lost.
inline constexpr std::uint64_t key_id_unknown = ~std::uint64_t{0};

/// Returns the log id, the upper half of an incarnation. All incarnations of one log share it. 0: the log was
/// begun without an id.
constexpr std::uint32_t log_id_of(std::uint64_t incarnation) {
  return static_cast<std::uint32_t>(incarnation >> 32);
}

/// A range of epochs, both ends included.
struct Epochs {
  std::uint32_t first = 0;
  std::uint32_t last = ~std::uint32_t{0};

  static constexpr Epochs any() { return {}; }
  /// Returns the epochs that a log may have used in a file with `epoch` in its header. A power cut may have
  /// left the header of an earlier use. Bytes of the file with any other epoch belong to another log.
  static constexpr Epochs since(std::uint32_t epoch) { return {epoch, epoch | (epochs_unsynced_max - 1)}; }
  [[nodiscard]] constexpr bool contain(std::uint32_t epoch) const { return first <= epoch && epoch <= last; }
};

/// The fields of a segment file's header.
struct SegmentHeader {
  std::uint32_t epoch = 0;        ///< in every batch of the file; never 0
  Offset first_offset;            ///< of the first batch, or offset_not_yet_known
  std::uint64_t incarnation = 0;  ///< of the log: the same in all its files
  std::uint64_t file_bytes = 0;   ///< allocated length, header included
  /// Written by a repair: the messages in [gap_begin, first_offset) are lost; 0: no gap.
  Offset gap_begin = {};
  std::uint64_t key_id = 0;  ///< of the key that encrypts the batches; 0: they are not encrypted
  /// XORed onto the header checksum of each batch of the file, so that no client can forge a batch inside a
  /// message. Drawn at random for each log, and never shown to a client. 0: the file is older than masks.
  std::uint32_t batch_mask = 0;
};

/// The properties that distinguish a segment's batches from other bytes in its file.
struct BatchMarks {
  Epochs epochs;
  std::optional<std::uint32_t> mask = 0;  ///< nothing: lost with the header, so any mask is accepted

  static constexpr BatchMarks of(const SegmentHeader& header) {
    return {header.epoch == 0 ? Epochs::any() : Epochs{header.epoch, header.epoch}, header.batch_mask};
  }
  /// Returns the marks of batches in a file that has lost its own header. `earlier`: the header of the file's
  /// earlier use by the same log, or null. `log_mask`: used without `earlier`; the mask of the log's other
  /// files, 0 if it is not known.
  static constexpr BatchMarks under_lost_header(const SegmentHeader* earlier, std::uint32_t log_mask) {
    if (earlier != nullptr) return {Epochs::since(earlier->epoch), earlier->batch_mask};
    return {Epochs::any(), log_mask == 0 ? std::nullopt : std::optional(log_mask)};
  }
};

/// Identifies one boot of the machine; 0: any boot. Unsynced writes survive the end of the process, but not
/// of the boot.
struct BootId {
  std::uint64_t value = 0;
  friend constexpr bool operator==(BootId, BootId) = default;
};

/// The end of a segment that takes no more batches.
struct SegmentSeal {
  std::uint64_t end_position = 0;
  Offset end_offset;
  Timestamp newest;  ///< append time of the newest batch
  BootId boot = {};  ///< 0: all of it was synced before; else the seal is valid in this boot only
};

/// A known state of a segment that is being written: everything before `end_position` is sound.
struct SegmentCheckpoint {
  /// Starts at 1 in each segment; the checkpoint with the higher one is the current one.
  std::uint64_t sequence = 0;
  std::uint64_t end_position = 0;
  Offset end_offset;
  Timestamp newest;
  BootId boot = {};  ///< 0: all before `end_position` was synced before; else it is valid in this boot only
  std::uint64_t reserved = 0;  ///< no batch ends beyond this position
  bool clean = false;          ///< nothing was appended after it
};

using SegmentPage = std::array<std::byte, segment_header_bytes>;
inline constexpr std::size_t segment_seal_position = 64;
inline constexpr std::size_t segment_seal_bytes = 64;
/// The header's second part: the batch mask and its checksum. It follows the seal in the same disk sector.
inline constexpr std::size_t segment_mask_position = 128;
inline constexpr std::size_t segment_mask_bytes = 8;
/// Returns a checkpoint for the state that `point` describes, which reserves nothing yet.
inline SegmentCheckpoint checkpoint_at(const SegmentSeal& point) {
  return {.end_position = point.end_position,
          .end_offset = point.end_offset,
          .newest = point.newest,
          .boot = point.boot};
}
/// The two checkpoint slots. Each has its own disk sector, and checkpoints are written to them in turn.
inline constexpr std::array<std::size_t, 2> segment_checkpoint_positions = {512, 1024};
inline constexpr std::size_t segment_checkpoint_bytes = 64;
/// How many bytes a writer may append past its newest checkpoint: the most that recovery has to scan.
inline constexpr std::uint64_t checkpoint_reserve_bytes = 64 * limits::MiB;
/// A new checkpoint is due after this many bytes.
inline constexpr std::uint64_t checkpoint_interval_bytes = 16 * limits::MiB;

/// Returns the checkpoint of a segment that has no batch yet.
SegmentCheckpoint first_checkpoint(const SegmentHeader& header);
/// Returns the first page of a new segment: the header and, if its first offset is known, its first
/// checkpoint.
SegmentPage encode_segment_header(const SegmentHeader& header);
/// Returns the bytes of a seal, to be written at segment_seal_position. `header`: of the segment that it
/// seals.
std::array<std::byte, segment_seal_bytes> encode_segment_seal(const SegmentSeal& seal,
                                                              const SegmentHeader& header);

std::array<std::byte, segment_checkpoint_bytes> encode_segment_checkpoint(const SegmentCheckpoint& checkpoint,
                                                                          const SegmentHeader& header);
/// Returns the position of the slot for the checkpoint with this sequence.
constexpr std::size_t segment_checkpoint_position(std::uint64_t sequence) {
  return segment_checkpoint_positions[sequence % 2];
}

enum class HeaderFault {
  blank,    ///< all zero: never written
  foreign,  ///< unknown magic, version or byte order, or required flags that this version does not know
  damaged,  ///< wrong checksum, or impossible values
};

/// The header decoded from a first page; without one, `fault` says why.
struct DecodedHeader {
  std::optional<SegmentHeader> header;
  HeaderFault fault = HeaderFault::damaged;
};
DecodedHeader decode_segment_header(const SegmentPage& page);
/// Returns true if a newer version of LightQ wrote this page: the header's fault is `foreign`, but magic and
/// checksum are right.
bool is_newer_segment(const SegmentPage& page);
/// Returns the error for a file with a `foreign` first page. It names the version or flags that are
/// unknown.
Error foreign_segment(const std::string& path, const SegmentPage& page);
/// Returns the seal of a first page, if it is sound and valid in this boot.
std::optional<SegmentSeal> decode_segment_seal(const SegmentPage& page, const SegmentHeader& header,
                                               BootId boot);
/// Returns the seal of a first page, if it is sound, whichever boot it is valid in.
std::optional<SegmentSeal> decode_any_seal(const SegmentPage& page, const SegmentHeader& header);
/// Returns the newest sound checkpoint that is valid in this boot. Its `reserved` includes the space that a
/// later checkpoint of another boot has reserved.
std::optional<SegmentCheckpoint> decode_segment_checkpoint(const SegmentPage& page,
                                                           const SegmentHeader& header, BootId boot);
/// Returns true if both slots hold clean checkpoints that agree. The second is written only once the first is
/// on disk, so a power cut leaves at least one of them.
bool has_both_clean_marks(const SegmentPage& page, const SegmentHeader& header);
/// Returns the highest sequence of any sound checkpoint, in whichever boot it is valid. The next one written
/// gets the next higher sequence.
std::uint64_t highest_checkpoint_sequence(const SegmentPage& page, const SegmentHeader& header);

/// Returns the file name of a segment, for example `00000000000000000042.seg`.
std::string segment_name(Offset first_offset);
/// Returns the offset in a segment's file name, or nothing for another name or an offset above
/// limits::offset_max.
std::optional<Offset> segment_name_offset(std::string_view name);
/// Returns the end of the offsets that a last file without a readable header reserves, at least: one, so that
/// the next segment gets another name. There is none above limits::offset_max; a log that ends there begins
/// no segment any more.
constexpr Offset end_of_reserved(Offset name) {
  return name.value < limits::offset_max ? name + 1 : name;
}

}  // namespace lightq::log
