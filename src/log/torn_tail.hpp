/// The end of a segment that was being written when its process ended, or the power. Layer: log.
/// docs/log_format.md, "Recovery".
#pragma once

#include <cstdint>
#include <string>

#include "log/segment_file.hpp"
#include "log/segment_scanner.hpp"

namespace lightq::log {

/// Fails if the disk could not read some of the bytes from `begin` up to `end` that the scanner looked at:
/// they may be durable messages. Not damage, neither wiped nor written over, for the disk may yet give them;
/// only a repair gives them up.
Result<void> check_readable(const std::string& path, const SegmentScanner& scanner, std::uint64_t begin,
                            std::uint64_t end);
/// Fails if the scanner has come to a batch that a newer version wrote.
Result<void> check_known(const std::string& path, const SegmentScanner& scanner);
/// As check_known, of all batches of the file up to `limit`.
Result<void> check_all_known(const std::string& path, File& file, const SegmentHeader& header,
                             std::uint64_t limit);
/// Writes zeros over what is not zero from `begin` on, and syncs that. Blocks that cannot be read stay.
Result<void> wipe_tail(SegmentFile& segment, std::uint64_t begin, SegmentScanner& scanner);

}  // namespace lightq::log
