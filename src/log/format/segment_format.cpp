/// Encodes and decodes a segment file's first page, which docs/log_format.md, "Segment file", specifies.
/// Layer: log.
#include "log/format/segment_format.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

#include <lightq/base/bytes.hpp>
#include <lightq/base/crc32c.hpp>
#include <lightq/base/limits.hpp>

#include "log/newer_format.hpp"

namespace lightq::log {

namespace {

// "LSEG", then bytes that a transfer in text mode would change.
constexpr std::uint64_t magic_value = 0x0A1A0A0D4745534CULL;
constexpr std::uint32_t seal_magic = 0x4C414553;  // "SEAL"
constexpr std::string_view name_suffix = ".seg";
constexpr std::size_t name_digits = 20;

// Header fields, in bytes from the file's start.
constexpr std::size_t at_magic = 0;                     // u64
constexpr std::size_t at_version = 8;                   // u32
constexpr std::size_t at_epoch = 12;                    // u32
constexpr std::size_t at_first_offset = 16;             // u64
constexpr std::size_t at_incarnation = 24;              // u64
constexpr std::size_t at_file_bytes = 32;               // u64
constexpr std::size_t at_gap_begin = 40;                // u64
constexpr std::size_t at_key_id = 48;                   // u64
constexpr std::size_t at_flags = 56;                    // u32: 1 = there is a batch mask
constexpr std::size_t at_crc = 60;                      // u32: of bytes [0,60)
constexpr std::size_t at_mask = segment_mask_position;  // u32
constexpr std::size_t at_mask_crc = at_mask + 4;        // u32: of bytes [128,132)
constexpr std::uint32_t flag_masked = 1;

// Seal fields, in bytes from segment_seal_position.
constexpr std::size_t seal_at_epoch = 4;         // u32
constexpr std::size_t seal_at_end_position = 8;  // u64
constexpr std::size_t seal_at_end_offset = 16;   // u64
constexpr std::size_t seal_at_newest = 24;       // i64
constexpr std::size_t seal_at_incarnation = 32;  // u64
constexpr std::size_t seal_at_boot = 40;         // u64
constexpr std::size_t seal_at_flags = 48;        // u32: none is known yet
constexpr std::size_t seal_at_crc = 60;          // u32: of the seal's bytes [0,60)

// Checkpoint fields, in bytes from the slot's start.
constexpr std::uint32_t checkpoint_magic = 0x54504B43;  // "CKPT"
constexpr std::size_t checkpoint_at_epoch = 4;          // u32
constexpr std::size_t checkpoint_at_sequence = 8;       // u64
constexpr std::size_t checkpoint_at_end_position = 16;  // u64
constexpr std::size_t checkpoint_at_end_offset = 24;    // u64
constexpr std::size_t checkpoint_at_newest = 32;        // i64
constexpr std::size_t checkpoint_at_boot = 40;          // u64
constexpr std::size_t checkpoint_at_reserved = 48;      // u64
constexpr std::size_t checkpoint_at_flags = 56;         // u32: 1 = clean
constexpr std::size_t checkpoint_at_crc = 60;           // u32: of the slot's bytes [0,60) and the incarnation
constexpr std::uint32_t checkpoint_flag_clean = 1;

std::uint32_t checkpoint_crc(const std::byte* slot, const SegmentHeader& header) {
  std::array<std::byte, 8> incarnation{};
  store_little_endian(incarnation.data(), header.incarnation);
  return crc32c(incarnation, crc32c({slot, checkpoint_at_crc}));
}

std::optional<SegmentCheckpoint> decode_slot(const std::byte* slot, const SegmentHeader& header) {
  const auto flags = load_little_endian<std::uint32_t>(slot + checkpoint_at_flags);
  const bool sound =
      load_little_endian<std::uint32_t>(slot) == checkpoint_magic &&
      load_little_endian<std::uint32_t>(slot + checkpoint_at_crc) == checkpoint_crc(slot, header) &&
      load_little_endian<std::uint32_t>(slot + checkpoint_at_epoch) == header.epoch &&
      load_little_endian<std::uint64_t>(slot + checkpoint_at_end_offset) <= limits::offset_max;
  if (!sound) return std::nullopt;
  SegmentCheckpoint checkpoint;
  checkpoint.sequence = load_little_endian<std::uint64_t>(slot + checkpoint_at_sequence);
  checkpoint.end_position = load_little_endian<std::uint64_t>(slot + checkpoint_at_end_position);
  checkpoint.end_offset = {load_little_endian<std::uint64_t>(slot + checkpoint_at_end_offset)};
  checkpoint.newest = {load_little_endian<std::int64_t>(slot + checkpoint_at_newest)};
  checkpoint.boot = {load_little_endian<std::uint64_t>(slot + checkpoint_at_boot)};
  checkpoint.reserved = load_little_endian<std::uint64_t>(slot + checkpoint_at_reserved);
  checkpoint.clean = (flags & checkpoint_flag_clean) != 0;
  return checkpoint;
}

/// Returns the position of the first flags field in which a required flag is unknown to this version, or 0 if
/// all are known. Requires: the page's header is sound.
std::size_t unknown_flags_in(const SegmentPage& page, const SegmentHeader& header) {
  const auto required = [&](std::size_t position) {
    return required_flags(load_little_endian<std::uint32_t>(page.data() + position));
  };
  if ((required(at_flags) & ~flag_masked) != 0) return at_flags;
  for (const std::size_t slot : segment_checkpoint_positions) {
    const bool known = (required(slot + checkpoint_at_flags) & ~checkpoint_flag_clean) == 0;
    if (!known && decode_slot(page.data() + slot, header)) return slot + checkpoint_at_flags;
  }
  const std::size_t seal_flags = segment_seal_position + seal_at_flags;
  return required(seal_flags) != 0 && decode_any_seal(page, header) ? seal_flags : 0;
}

std::optional<SegmentHeader> decode_known(const SegmentPage& page, std::uint32_t version) {
  SegmentHeader header;
  header.epoch = load_little_endian<std::uint32_t>(page.data() + at_epoch);
  header.first_offset = {load_little_endian<std::uint64_t>(page.data() + at_first_offset)};
  header.incarnation = load_little_endian<std::uint64_t>(page.data() + at_incarnation);
  header.file_bytes = load_little_endian<std::uint64_t>(page.data() + at_file_bytes);
  header.gap_begin = {load_little_endian<std::uint64_t>(page.data() + at_gap_begin)};
  if (version == encrypted_format_version)
    header.key_id = load_little_endian<std::uint64_t>(page.data() + at_key_id);
  const bool masked = (load_little_endian<std::uint32_t>(page.data() + at_flags) & flag_masked) != 0;
  if (masked) header.batch_mask = load_little_endian<std::uint32_t>(page.data() + at_mask);
  const bool mask_sound = !masked || load_little_endian<std::uint32_t>(page.data() + at_mask_crc) ==
                                         crc32c({page.data() + at_mask, sizeof(std::uint32_t)});
  const bool sound =
      mask_sound &&
      load_little_endian<std::uint32_t>(page.data() + at_crc) == crc32c({page.data(), at_crc}) &&
      header.epoch != 0 && header.file_bytes >= segment_header_bytes &&
      (header.first_offset.value <= limits::offset_max || header.first_offset == offset_not_yet_known) &&
      header.gap_begin.value <= limits::offset_max;
  return sound ? std::optional(header) : std::nullopt;
}

std::uint32_t version_of(std::uint64_t key_id) {
  return key_id == 0 ? segment_format_version : encrypted_format_version;
}

bool holds(BootId written, BootId now) {
  return written == BootId{} || written == now;
}

}  // namespace

SegmentCheckpoint first_checkpoint(const SegmentHeader& header) {
  SegmentCheckpoint checkpoint;
  checkpoint.sequence = 1;
  checkpoint.end_position = segment_header_bytes;
  checkpoint.end_offset = header.first_offset;
  checkpoint.reserved = std::min(header.file_bytes, segment_header_bytes + checkpoint_reserve_bytes);
  return checkpoint;
}

SegmentPage encode_segment_header(const SegmentHeader& header) {
  SegmentPage page{};
  store_little_endian(page.data() + at_magic, magic_value);
  store_little_endian(page.data() + at_version, version_of(header.key_id));
  store_little_endian(page.data() + at_epoch, header.epoch);
  store_little_endian(page.data() + at_first_offset, header.first_offset.value);
  store_little_endian(page.data() + at_incarnation, header.incarnation);
  store_little_endian(page.data() + at_file_bytes, header.file_bytes);
  store_little_endian(page.data() + at_gap_begin, header.gap_begin.value);
  store_little_endian(page.data() + at_key_id, header.key_id);
  if (header.batch_mask != 0) {
    store_little_endian(page.data() + at_flags, flag_masked);
    store_little_endian(page.data() + at_mask, header.batch_mask);
    store_little_endian(page.data() + at_mask_crc, crc32c({page.data() + at_mask, sizeof(std::uint32_t)}));
  }
  store_little_endian(page.data() + at_crc, crc32c({page.data(), at_crc}));
  if (header.first_offset == offset_not_yet_known) return page;
  const SegmentCheckpoint first = first_checkpoint(header);
  const auto slot = encode_segment_checkpoint(first, header);
  std::copy(slot.begin(), slot.end(), page.begin() + segment_checkpoint_position(first.sequence));
  return page;
}

std::array<std::byte, segment_seal_bytes> encode_segment_seal(const SegmentSeal& seal,
                                                              const SegmentHeader& header) {
  std::array<std::byte, segment_seal_bytes> bytes{};
  store_little_endian(bytes.data(), seal_magic);
  store_little_endian(bytes.data() + seal_at_epoch, header.epoch);
  store_little_endian(bytes.data() + seal_at_end_position, seal.end_position);
  store_little_endian(bytes.data() + seal_at_end_offset, seal.end_offset.value);
  store_little_endian(bytes.data() + seal_at_newest, seal.newest.us);
  store_little_endian(bytes.data() + seal_at_incarnation, header.incarnation);
  store_little_endian(bytes.data() + seal_at_boot, seal.boot.value);
  store_little_endian(bytes.data() + seal_at_crc, crc32c({bytes.data(), seal_at_crc}));
  return bytes;
}

std::array<std::byte, segment_checkpoint_bytes> encode_segment_checkpoint(const SegmentCheckpoint& checkpoint,
                                                                          const SegmentHeader& header) {
  std::array<std::byte, segment_checkpoint_bytes> bytes{};
  store_little_endian(bytes.data(), checkpoint_magic);
  store_little_endian(bytes.data() + checkpoint_at_epoch, header.epoch);
  store_little_endian(bytes.data() + checkpoint_at_sequence, checkpoint.sequence);
  store_little_endian(bytes.data() + checkpoint_at_end_position, checkpoint.end_position);
  store_little_endian(bytes.data() + checkpoint_at_end_offset, checkpoint.end_offset.value);
  store_little_endian(bytes.data() + checkpoint_at_newest, checkpoint.newest.us);
  store_little_endian(bytes.data() + checkpoint_at_boot, checkpoint.boot.value);
  store_little_endian(bytes.data() + checkpoint_at_reserved, checkpoint.reserved);
  store_little_endian(bytes.data() + checkpoint_at_flags, checkpoint.clean ? checkpoint_flag_clean : 0U);
  store_little_endian(bytes.data() + checkpoint_at_crc, checkpoint_crc(bytes.data(), header));
  return bytes;
}

DecodedHeader decode_segment_header(const SegmentPage& page) {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (std::all_of(page.begin(), page.begin() + 64, is_zero)) return {std::nullopt, HeaderFault::blank};
  const auto version = load_little_endian<std::uint32_t>(page.data() + at_version);
  const auto key_id = load_little_endian<std::uint64_t>(page.data() + at_key_id);
  const bool known =
      version == segment_format_version || (version == encrypted_format_version && key_id != 0);
  if (load_little_endian<std::uint64_t>(page.data() + at_magic) != magic_value || !known)
    return {std::nullopt, HeaderFault::foreign};
  const auto header = decode_known(page, version);
  if (!header) return {std::nullopt, HeaderFault::damaged};
  if (unknown_flags_in(page, *header) != 0) return {std::nullopt, HeaderFault::foreign};
  return {header, HeaderFault::damaged};
}

bool is_newer_segment(const SegmentPage& page) {
  return decode_segment_header(page).fault == HeaderFault::foreign &&
         load_little_endian<std::uint64_t>(page.data() + at_magic) == magic_value &&
         load_little_endian<std::uint32_t>(page.data() + at_crc) == crc32c({page.data(), at_crc});
}

Error foreign_segment(const std::string& path, const SegmentPage& page) {
  const auto version = load_little_endian<std::uint32_t>(page.data() + at_version);
  const std::string known =
      std::to_string(segment_format_version) + " or " + std::to_string(encrypted_format_version);
  if (load_little_endian<std::uint64_t>(page.data() + at_magic) != magic_value)
    return {ErrorCode::foreign_format, path + " is not a segment file of version " + known, 0};
  if (version > encrypted_format_version)
    return newer_format(path + " is a segment file of version " + std::to_string(version) + ", not " + known);
  const auto header = decode_known(page, version);
  const std::size_t position = header ? unknown_flags_in(page, *header) : 0;
  if (position == 0)
    return {ErrorCode::foreign_format, path + " is not a segment file of version " + known, 0};
  const auto flags = load_little_endian<std::uint32_t>(page.data() + position);
  return newer_format(path + " is a segment file of version " + std::to_string(version) + " with flags " +
                      hexadecimal(flags) + " at position " + std::to_string(position) +
                      ", which this version does not know");
}

std::string hexadecimal(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%04X", static_cast<unsigned>(value));
  return text.data();
}

std::optional<SegmentSeal> decode_any_seal(const SegmentPage& page, const SegmentHeader& header) {
  const std::byte* seal = page.data() + segment_seal_position;
  const bool sound = load_little_endian<std::uint32_t>(seal) == seal_magic &&
                     load_little_endian<std::uint32_t>(seal + seal_at_crc) == crc32c({seal, seal_at_crc}) &&
                     load_little_endian<std::uint32_t>(seal + seal_at_epoch) == header.epoch &&
                     load_little_endian<std::uint64_t>(seal + seal_at_incarnation) == header.incarnation &&
                     load_little_endian<std::uint64_t>(seal + seal_at_end_offset) <= limits::offset_max;
  if (!sound) return std::nullopt;
  return SegmentSeal{load_little_endian<std::uint64_t>(seal + seal_at_end_position),
                     {load_little_endian<std::uint64_t>(seal + seal_at_end_offset)},
                     {load_little_endian<std::int64_t>(seal + seal_at_newest)},
                     {load_little_endian<std::uint64_t>(seal + seal_at_boot)}};
}

std::optional<SegmentSeal> decode_segment_seal(const SegmentPage& page, const SegmentHeader& header,
                                               BootId boot) {
  const auto seal = decode_any_seal(page, header);
  return seal && holds(seal->boot, boot) ? seal : std::nullopt;
}

std::optional<SegmentCheckpoint> decode_segment_checkpoint(const SegmentPage& page,
                                                           const SegmentHeader& header, BootId boot) {
  std::optional<SegmentCheckpoint> newest;
  for (const std::size_t position : segment_checkpoint_positions) {
    const auto found = decode_slot(page.data() + position, header);
    if (!found || !holds(found->boot, boot)) continue;
    if (!newest || newest->sequence < found->sequence) newest = found;
  }
  if (!newest) return newest;
  // A later checkpoint that another boot wrote is not valid in this one. It still shows how far its writer
  // may have gone, and that the segment was appended to after a clean mark.
  for (const std::size_t position : segment_checkpoint_positions) {
    const auto found = decode_slot(page.data() + position, header);
    if (!found || found->sequence <= newest->sequence) continue;
    newest->reserved = std::max(newest->reserved, found->reserved);
    newest->clean = false;
  }
  return newest;
}

bool has_both_clean_marks(const SegmentPage& page, const SegmentHeader& header) {
  const auto first = decode_slot(page.data() + segment_checkpoint_positions[0], header);
  const auto second = decode_slot(page.data() + segment_checkpoint_positions[1], header);
  return first && second && first->clean && second->clean && first->boot == BootId{} &&
         second->boot == BootId{} && first->end_position == second->end_position &&
         first->end_offset == second->end_offset;
}

std::uint64_t highest_checkpoint_sequence(const SegmentPage& page, const SegmentHeader& header) {
  std::uint64_t highest = 0;
  for (const std::size_t position : segment_checkpoint_positions) {
    const auto found = decode_slot(page.data() + position, header);
    if (found) highest = std::max(highest, found->sequence);
  }
  return highest;
}

std::string segment_name(Offset first_offset) {
  const std::string digits = std::to_string(first_offset.value);
  return std::string(name_digits - digits.size(), '0') + digits + std::string(name_suffix);
}

std::optional<Offset> segment_name_offset(std::string_view name) {
  if (name.size() != name_digits + name_suffix.size() || !name.ends_with(name_suffix)) return std::nullopt;
  Offset offset;
  const char* end = name.data() + name_digits;
  const auto parsed = std::from_chars(name.data(), end, offset.value);
  if (parsed.ec != std::errc() || parsed.ptr != end || offset.value > limits::offset_max) return std::nullopt;
  return offset;
}

}  // namespace lightq::log
