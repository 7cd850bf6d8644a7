/// Damages the batch that was being packed when a process was killed, and the first page, which records it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::test {

/// Flips every bit of both, one at a time, and opens and reads the log in the same boot. No message may be
/// wrong. A damaged message must be cut, or the file refused. Returns the first error. Adds to `cases`.
std::optional<std::string> flip_open_batch(std::uint64_t& cases);

}  // namespace lightq::test
