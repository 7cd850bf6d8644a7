/// The format of a producer file. The broker stores a topic's producers in it; tools check it. Layer: log.
/// docs/log_format.md, "Producer file".
#pragma once

#include <cstddef>
#include <cstdint>

#include "log/saved_state/slot_file.hpp"

namespace lightq::log {

/// Positions in the body: u64 as_of, then one entry for each producer.
namespace producer_layout {

inline constexpr std::size_t as_of_bytes = 8;
inline constexpr std::size_t at_id = 0;          // u64
inline constexpr std::size_t at_expected = 8;    // u64
inline constexpr std::size_t at_last_used = 16;  // i64
inline constexpr std::size_t at_epoch = 24;      // u16
inline constexpr std::size_t entry_bytes_1 = 26;
// From version 2 on.
inline constexpr std::size_t at_flags = 26;   // u16
inline constexpr std::size_t at_owner = 28;   // u64
inline constexpr std::size_t at_secret = 36;  // 16 bytes
inline constexpr std::size_t secret_bytes = 16;
inline constexpr std::size_t entry_bytes_2 = 52;

inline constexpr std::uint16_t flag_owner = 1;   // the producer has an owner
inline constexpr std::uint16_t flag_secret = 2;  // the producer has a secret

constexpr std::size_t entry_bytes_of(std::uint32_t version) {
  return version == 1 ? entry_bytes_1 : entry_bytes_2;
}

}  // namespace producer_layout

/// Returns the format of the slot files `producers.0` and `producers.1`. Lifetime: that of the program.
const SlotFormat& producer_slot_format();
/// The names of the slot files, without the number.
inline constexpr const char* producer_slots_name = "producers";

}  // namespace lightq::log
