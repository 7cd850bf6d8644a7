/// Damages the batch that was being packed when a process was killed, and the first page that tells of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::test {

/// Flips every bit of both, one at a time; the log is opened in the same boot and read. No message may be
/// wrong; what a bit has spoiled is cut, or the file is refused. Counts the `cases`.
std::optional<std::string> flip_open_batch(std::uint64_t& cases);

}  // namespace lightq::test
