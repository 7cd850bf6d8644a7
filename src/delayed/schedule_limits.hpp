/// Bounds of a schedule's work. Layer: delayed.
#pragma once

#include <cstddef>
#include <cstdint>

#include <lightq/base/limits.hpp>

#include "delayed/schedule_record.hpp"

namespace lightq::broker {

/// Tests make these smaller.
struct ScheduleLimits {
  /// Old files are cleared when the log has this many bytes more than twice those of the waiting messages.
  std::uint64_t garbage_bytes = 4 * limits::MiB;
  std::size_t copy_bytes = 256 * limits::KiB;  ///< copied by one call of maintain, about
  std::size_t messages = limits::delayed_messages_max;
  std::size_t planned = std::size_t{32} * schedule_record_numbers_max;  ///< the most planned messages: 8 MiB
  std::size_t planned_at_once = std::size_t{2} * schedule_record_numbers_max;  ///< by one call
  /// A plan that is broken is mended at once if it is not longer, otherwise when its record is durable.
  std::size_t mended_at_once = 256;
  /// Returns roughly how many bytes wait at least if a schedule's log has `stored` bytes, because the upkeep
  /// of the log clears it above that.
  [[nodiscard]] constexpr std::uint64_t least_charge(std::uint64_t stored) const {
    return stored <= garbage_bytes ? 0 : (stored - garbage_bytes) / 2;
  }
};

}  // namespace lightq::broker
