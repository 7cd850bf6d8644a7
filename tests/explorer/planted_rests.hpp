/// What a power cut leaves of messages that are gone, put where the log writes next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::test {

/// A log's dropped file becomes its next segment, unsynced; a power cut gives the file back to the pool with
/// the header of before, while the batches under the undone one's epoch have come to the disk. The next
/// process uses the file for the same offsets again and is killed behind the first batch: what lies behind
/// that one must be no message. Answers what was wrong; counts the `cases`.
std::optional<std::string> use_file_with_undone_header(std::uint64_t& cases);

}  // namespace lightq::test
