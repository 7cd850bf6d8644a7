/// Replaces an index by wrong ones and reads with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::test {

/// Makes a queue of two segments. Flips every bit of the first segment's index, then writes indexes with a
/// valid checksum and wrong entries. Each time it opens the queue and reads from end to end, and from many
/// offsets and times. Messages and positions must always be those of the log. Returns the first error. Adds
/// to `cases`.
std::optional<std::string> read_by_lying_indexes(std::uint64_t& cases);

}  // namespace lightq::test
