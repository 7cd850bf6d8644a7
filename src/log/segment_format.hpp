/// A segment file's first page: the header, the checkpoints of a segment that is being written, and the seal
/// that a full one gets. Byte by byte: docs/log_format.md, "Segment file". Layer: log.
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

/// The whole first page is the header's, so that no batch ever shares a page with it.
inline constexpr std::size_t segment_header_bytes = 4096;
/// The length of a file that has room for `bytes`.
constexpr std::uint64_t round_up_to_page(std::uint64_t bytes) {
  return (bytes + segment_header_bytes - 1) / segment_header_bytes * segment_header_bytes;
}
/// The smallest file: one page of batches.
inline constexpr std::uint64_t segment_file_bytes_min = 2 * segment_header_bytes;
inline constexpr std::uint32_t segment_format_version = 1;
/// Of a segment whose batches are encrypted: a program from before knows that it cannot read it.
inline constexpr std::uint32_t encrypted_format_version = 2;
/// A header that was written before its segment's first offset was known: the file's name has it.
inline constexpr Offset offset_not_yet_known{~std::uint64_t{0}};

/// A file gets a new epoch with each use. Up to the next multiple of this the uses may follow each other
/// without a sync, in one log; see docs/log_format.md, "Epochs, and the pool".
inline constexpr std::uint32_t epochs_unsynced_max = 0x10000;

/// SegmentHeader::key_id, where it was lost: a repair found encrypted batches under no header.
inline constexpr std::uint64_t key_id_unknown = ~std::uint64_t{0};

/// The upper half of an incarnation: whose log it is, over all its lives. 0: of a log that was begun for
/// nobody.
constexpr std::uint32_t log_id_of(std::uint64_t incarnation) {
  return static_cast<std::uint32_t>(incarnation >> 32);
}

/// Some epochs.
struct Epochs {
  std::uint32_t first = 0;
  std::uint32_t last = ~std::uint32_t{0};

  static constexpr Epochs any() { return {}; }
  /// That with which a log has used a file, where a power cut may have left the header of an earlier use,
  /// with `epoch`. All others that bytes in the file have are another log's.
  static constexpr Epochs since(std::uint32_t epoch) { return {epoch, epoch | (epochs_unsynced_max - 1)}; }
  [[nodiscard]] constexpr bool contain(std::uint32_t epoch) const { return first <= epoch && epoch <= last; }
};

/// What a segment file says of itself.
struct SegmentHeader {
  std::uint32_t epoch = 0;        ///< in every batch of the file; never 0
  Offset first_offset;            ///< of the first batch, or offset_not_yet_known
  std::uint64_t incarnation = 0;  ///< of the log: the same in all its files
  std::uint64_t file_bytes = 0;   ///< allocated, header included
  Offset gap_begin = {};          ///< a repair says: from here up to first_offset all is lost; 0: no gap
  std::uint64_t key_id = 0;       ///< of what its batches are encrypted with; 0: they are not
  /// XORed onto the header checksum of each of its batches: random, of the log, and shown to no client, so
  /// that no message can hold a batch. 0: of a file from before there were masks.
  std::uint32_t batch_mask = 0;
};

/// What tells a segment's batches from other bytes in its file.
struct BatchMarks {
  Epochs epochs;
  std::optional<std::uint32_t> mask = 0;  ///< nothing: it is lost with the header, and any is taken

  static constexpr BatchMarks of(const SegmentHeader& header) {
    return {header.epoch == 0 ? Epochs::any() : Epochs{header.epoch, header.epoch}, header.batch_mask};
  }
  /// Of a file whose own header is lost. `earlier`: the header of its earlier use by the same log, if that is
  /// there; else `log_mask` is that of the log's other files, 0 if it is not known.
  static constexpr BatchMarks under_lost_header(const SegmentHeader* earlier, std::uint32_t log_mask) {
    if (earlier != nullptr) return {Epochs::since(earlier->epoch), earlier->batch_mask};
    return {Epochs::any(), log_mask == 0 ? std::nullopt : std::optional(log_mask)};
  }
};

/// Of the machine's boots, one; 0: whichever. What is only in memory survives the process, not the boot.
struct BootId {
  std::uint64_t value = 0;
  friend constexpr bool operator==(BootId, BootId) = default;
};

/// What is known of a segment that takes no more batches.
struct SegmentSeal {
  std::uint64_t end_position = 0;
  Offset end_offset;
  Timestamp newest;  ///< append time of the last batch
  BootId boot = {};  ///< 0: all of it was synced before; else it holds in this boot only
};

/// What is known of a segment that is being written: everything before `end_position` is sound.
struct SegmentCheckpoint {
  std::uint64_t sequence = 0;  ///< from 1 in each segment; the higher one counts
  std::uint64_t end_position = 0;
  Offset end_offset;
  Timestamp newest;
  BootId boot = {};            ///< as SegmentSeal::boot
  std::uint64_t reserved = 0;  ///< no batch reaches beyond this position
  bool clean = false;          ///< nothing was appended after it
};

using SegmentPage = std::array<std::byte, segment_header_bytes>;
inline constexpr std::size_t segment_seal_position = 64;
inline constexpr std::size_t segment_seal_bytes = 64;
/// The batch mask and its checksum: the header's second part, behind the seal and in the same sector.
inline constexpr std::size_t segment_mask_position = 128;
inline constexpr std::size_t segment_mask_bytes = 8;
/// A checkpoint that says of a segment what `point` does, and reserves nothing yet.
inline SegmentCheckpoint checkpoint_at(const SegmentSeal& point) {
  return {.end_position = point.end_position,
          .end_offset = point.end_offset,
          .newest = point.newest,
          .boot = point.boot};
}
/// Two slots, in sectors of their own, written in turn.
inline constexpr std::array<std::size_t, 2> segment_checkpoint_positions = {512, 1024};
inline constexpr std::size_t segment_checkpoint_bytes = 64;
#ifdef LIGHTQ_SEEDED_BUGS  // tests of small logs set them
inline std::uint64_t checkpoint_reserve_bytes = 64 * limits::MiB;
inline std::uint64_t checkpoint_interval_bytes = 16 * limits::MiB;
#else
/// How far a writer goes past its newest checkpoint, and so what a recovery has to scan.
inline constexpr std::uint64_t checkpoint_reserve_bytes = 64 * limits::MiB;
/// A new checkpoint is due after so many bytes.
inline constexpr std::uint64_t checkpoint_interval_bytes = 16 * limits::MiB;
#endif

/// What is known of a segment when it begins.
SegmentCheckpoint first_checkpoint(const SegmentHeader& header);
/// The first page of a new segment: the header and, if its first offset is known, its first checkpoint.
SegmentPage encode_segment_header(const SegmentHeader& header);
/// The seal's bytes, which belong at segment_seal_position. Bound to the segment by its header.
std::array<std::byte, segment_seal_bytes> encode_segment_seal(const SegmentSeal& seal,
                                                              const SegmentHeader& header);

std::array<std::byte, segment_checkpoint_bytes> encode_segment_checkpoint(const SegmentCheckpoint& checkpoint,
                                                                          const SegmentHeader& header);
/// Where the checkpoint of this sequence belongs.
constexpr std::size_t segment_checkpoint_position(std::uint64_t sequence) {
  return segment_checkpoint_positions[sequence % 2];
}

enum class HeaderFault {
  blank,    ///< all zero: never written
  foreign,  ///< another magic, version or byte order, or required flags that this version does not know
  damaged,  ///< checksum or values
};

/// The header of a first page, or what is wrong with it.
struct DecodedHeader {
  std::optional<SegmentHeader> header;
  HeaderFault fault = HeaderFault::damaged;
};
DecodedHeader decode_segment_header(const SegmentPage& page);
/// A foreign page that a newer version of LightQ wrote, as its magic and its checksum say.
bool is_newer_segment(const SegmentPage& page);
/// The error for a file whose first page is `foreign`: what of it this version does not know.
Error foreign_segment(const std::string& path, const SegmentPage& page);
/// The seal of a first page whose header is `header`, if there is a valid one that holds in this boot.
std::optional<SegmentSeal> decode_segment_seal(const SegmentPage& page, const SegmentHeader& header,
                                               BootId boot);
/// As decode_segment_seal, whichever boot it holds in.
std::optional<SegmentSeal> decode_any_seal(const SegmentPage& page, const SegmentHeader& header);
/// The newest valid checkpoint that holds in this boot; with the reservation of a later one that does not.
std::optional<SegmentCheckpoint> decode_segment_checkpoint(const SegmentPage& page,
                                                           const SegmentHeader& header, BootId boot);
/// The highest sequence of any checkpoint there, whether it holds or not: the next one written is one higher.
/// Both slots are clean and agree: the second is written when the first is on disk, so a power cut leaves one
/// of them.
bool has_both_clean_marks(const SegmentPage& page, const SegmentHeader& header);
std::uint64_t highest_checkpoint_sequence(const SegmentPage& page, const SegmentHeader& header);

/// `00000000000000000042.seg`
std::string segment_name(Offset first_offset);
/// The offset in a segment's name; nothing for another name.
std::optional<Offset> segment_name_offset(std::string_view name);

}  // namespace lightq::log
