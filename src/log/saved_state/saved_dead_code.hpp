/// The dead messages of a cursor in a cursor file. docs/log_format.md, "Cursor file". Layer: log.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/saved_state/saved_dead.hpp"
#include "log/saved_state/set_code.hpp"

namespace lightq::log {

/// The parts of dead messages that a version of the cursor file has.
enum class DeadParts {
  none,
  without_expired,
  all,
};

/// Returns a number of bytes that the code of `dead` does not exceed.
std::size_t saved_dead_code_bytes_max(const SavedDead& dead);
/// Appends the code of the dead messages of a cursor at `offset`. Requires: they keep the limits and the
/// rules of SavedDead, and are in `messages`; otherwise the code cannot be decoded. `parts` is not `none`;
/// without_expired: none has expired.
void append_saved_dead(const SavedDead& dead, const OffsetSet& messages, Offset offset, DeadParts parts,
                       std::vector<std::byte>& to);
/// Takes the dead messages from bytes that may be wrong; see set_code.hpp. Returns nothing if one of them is
/// in `delayed`. `parts` is not `none`.
std::optional<SavedDead> take_saved_dead(ByteView& bytes, const SetBounds& bounds, const TimedSets& delayed,
                                         DeadParts parts, std::size_t& memory_left);

}  // namespace lightq::log
