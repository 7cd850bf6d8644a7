/// Plants indexes that do not say what the log does, and reads by them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::test {

/// A queue of two segments; the index of the first is given every single flipped bit, then entries that are
/// sound in themselves, checksum and all, and wrong. Each time the queue is opened, read from end to end and
/// then from many offsets and times on: whatever an index says, the messages and places are the log's. Counts
/// the `cases`.
std::optional<std::string> read_by_lying_indexes(std::uint64_t& cases);

}  // namespace lightq::test
