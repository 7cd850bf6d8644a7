/// The codes of sets of offsets in a cursor file. docs/log_format.md, "Cursor file". Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"
#include "log/saved_state/saved_dead.hpp"

namespace lightq::log {

/// The messages of a cursor, of which its sets are parts.
struct SetBounds {
  Offset offset;              ///< of the cursor
  Offset next;                ///< every set is below it
  const OffsetSet& messages;  ///< every part is a part of it
};

/// Appends a varint; see run_code.hpp.
void append_varint(std::uint64_t value, std::vector<std::byte>& to);
/// Returns a number of bytes that the code of a set or part does not exceed.
std::size_t set_code_bytes_max(const OffsetSet& set);
/// Appends a set that is not below `before`.
void append_set(const OffsetSet& set, Offset before, std::vector<std::byte>& to);
/// Appends a part of `messages`. A part of the same size is the whole.
void append_part(const OffsetSet& part, const OffsetSet& messages, Offset offset, std::vector<std::byte>& to);
/// Appends the number of parts, then for each the distance of its time to the one before, and its messages.
void append_timed_parts(const TimedSets& parts, const OffsetSet& messages, Offset offset,
                        std::vector<std::byte>& to);

// These take codes from bytes that may be wrong. They return nothing unless the bytes begin with a sound code
// that takes at most `memory_left` bytes of memory, and subtract about as much.

/// Subtracts memory. Returns false if there is not enough.
bool take_memory(std::size_t bytes, std::size_t& memory_left);
/// Takes a set of messages in [offset, next).
std::optional<OffsetSet> take_set(ByteView& bytes, Offset offset, Offset next, std::size_t& memory_left);
/// Takes a part of the bounds' messages.
std::optional<OffsetSet> take_part(ByteView& bytes, const SetBounds& bounds, std::size_t& memory_left);
/// Takes at most `times_max` parts that have no message in common.
std::optional<TimedSets> take_timed_parts(ByteView& bytes, const SetBounds& bounds, std::size_t times_max,
                                          std::size_t& memory_left);

/// Returns true if all offsets of `part` are in `whole`. Takes time for each run of `part`.
bool is_part_of(const OffsetSet& part, const OffsetSet& whole);
/// Returns true if all offsets of the parts are in `whole`, each in one part only. Merges the parts, so that
/// it takes time for each run, and memory for each part.
bool are_parts_once(const TimedSets& parts, const OffsetSet& whole);

}  // namespace lightq::log
