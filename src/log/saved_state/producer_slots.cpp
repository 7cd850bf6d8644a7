/// Checks the bytes of a producer file. docs/log_format.md, "Producer file". Layer: log.
#include "log/saved_state/producer_slots.hpp"

#include <algorithm>

#include <lightq/base/bytes.hpp>
#include <lightq/base/limits.hpp>

namespace lightq::log {

namespace {

/// Returns false if a field is set that the flags declare absent, or a flag that the version does not define.
bool is_sound_producer(const std::byte* entry, std::uint32_t version) {
  // Qualified, because a unity build may define the same names for another format in this namespace.
  namespace layout = producer_layout;
  if (load_little_endian<std::uint64_t>(entry + layout::at_id) == 0) return false;
  if (version == 1) return true;
  const auto flags = load_little_endian<std::uint16_t>(entry + layout::at_flags);
  if ((flags & ~(layout::flag_owner | layout::flag_secret)) != 0) return false;
  if ((flags & layout::flag_owner) == 0 && load_little_endian<std::uint64_t>(entry + layout::at_owner) != 0)
    return false;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{}; };
  return (flags & layout::flag_secret) != 0 ||
         std::all_of(entry + layout::at_secret, entry + layout::at_secret + layout::secret_bytes, is_zero);
}

bool are_sound_producers(const SlotBytes& slot) {
  const ByteView body = slot.body();
  const std::size_t entry_bytes = producer_layout::entry_bytes_of(slot.version());
  if (slot.count() > limits::producers_max) return false;
  if (body.size() != producer_layout::as_of_bytes + slot.count() * entry_bytes) return false;
  for (std::size_t at = producer_layout::as_of_bytes; at < body.size(); at += entry_bytes) {
    if (!is_sound_producer(body.data() + at, slot.version())) return false;
  }
  return true;
}

constexpr std::uint64_t producer_file_bytes_max = SlotBytes::header_bytes + producer_layout::as_of_bytes +
                                                  limits::producers_max * producer_layout::entry_bytes_2;
constexpr SlotFormat producer_format{"producer file",
                                     0x0A1A0A0D4452504CULL,  // "LPRD", then bytes that text mode corrupts
                                     2, producer_file_bytes_max, are_sound_producers};

}  // namespace

const SlotFormat& producer_slot_format() {
  return producer_format;
}

}  // namespace lightq::log
