/// Places old batches, as a power cut or another log may leave them, where the log writes next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lightq::test {

/// Reuses a dropped file as the log's next segment, unsynced. A power cut then returns the file to the pool
/// with its previous header, while the batches of the undone epoch are on disk. The next process uses the
/// file for the same offsets again and is killed after the first batch. The batches behind it must not be
/// taken for messages. Returns the error, if any. Adds to `cases`.
std::optional<std::string> use_file_with_undone_header(std::uint64_t& cases);

/// A client of one log stores a message that contains a batch of another log, with the right offset, epoch
/// and mask. The first log drops the file, and the other log needs a file of that size. Its process is killed
/// after its first batch there. The message must not become one of its messages. Returns the error, if any.
/// Adds to `cases`.
std::optional<std::string> use_file_with_forged_batch(std::uint64_t& cases);

}  // namespace lightq::test
