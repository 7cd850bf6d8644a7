/// The unfinished messages of a cursor in a cursor file. docs/log_format.md, "Cursor file". Layer: log.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/saved_state/saved_dead_code.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::log {

/// Returns a number of bytes that the code of `unfinished` does not exceed.
std::size_t unfinished_code_bytes_max(const Unfinished& unfinished);
/// Appends the code of the unfinished messages of a cursor at `offset`. `dead_parts`: those of the file's
/// version; there must be no others. Requires: they keep the limits and the rules of Unfinished;
/// otherwise the code cannot be decoded.
void append_unfinished(const Unfinished& unfinished, Offset offset, DeadParts dead_parts,
                       std::vector<std::byte>& to);
/// Takes the unfinished messages of a cursor at `offset` from bytes that may be wrong. Returns nothing unless
/// they begin with the code of possible ones, or if these would take more than `memory_left` bytes of memory.
/// Subtracts about what they take: a few bytes of a file may say that many sets have all messages.
std::optional<Unfinished> take_unfinished(ByteView& bytes, Offset offset, DeadParts dead_parts,
                                          std::size_t& memory_left);

}  // namespace lightq::log
