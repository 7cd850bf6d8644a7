/// What a power cut or another log leaves of messages that are gone, put where the log writes next.
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

/// A log's client stores a message that holds a batch as another log would write it, in all that tells them
/// apart; its log drops the file, and the other log needs one of that size. Its process is killed behind its
/// first batch: the message must be none of its. Answers what was wrong; counts the `cases`.
std::optional<std::string> use_file_with_forged_batch(std::uint64_t& cases);

}  // namespace lightq::test
