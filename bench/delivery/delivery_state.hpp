/// The figures of a group's state with a million scattered messages. Layer: bench.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"

namespace lightq::bench {

/// Returns `count` ascending offsets: every `step`-th one.
std::vector<std::uint64_t> every_offset(std::size_t count, std::uint64_t step);
/// Returns `count` ascending offsets, each with the chance of 1 in `one_of`. The same at each call.
std::vector<std::uint64_t> random_offsets(std::size_t count, std::uint64_t one_of);
/// Returns the messages that are left of all up to the last of `kept`, if all others are acknowledged in
/// random order.
log::OffsetSet left_of_acknowledgements(const std::vector<std::uint64_t>& kept);

/// The figures of one save and one start. Times are the thread's processor time.
struct StateFigures {
  std::size_t memory_bytes = 0;  ///< of the group's sets
  std::size_t saved_bytes = 0;   ///< of the cursor file
  double piece_ms = 0;           ///< the longest of the calls on the reactor
  double encode_ms = 0;          ///< on the encoding thread
  double decode_ms = 0;          ///< reading the file, and restoring the group
};

/// Restores a group with these unacknowledged messages, saves it as a topic's saves do, and restores another
/// group from the file. Throws Exception, or std::runtime_error if the second group differs from the first.
StateFigures figures_of_waiting(const log::OffsetSet& unacknowledged);
/// Makes a group with `members` members, each with `messages_each` messages in flight, every second of which
/// is acknowledged. Then as figures_of_waiting, without memory_bytes.
StateFigures figures_of_flight(std::size_t members, std::uint64_t messages_each);

}  // namespace lightq::bench
