/// The end of a segment that was being written when its process ended or the power failed. Layer: log.
/// docs/log_format.md, "Recovery".
#pragma once

#include <cstdint>
#include <string>

#include "log/format/segment_scanner.hpp"
#include "log/segment/segment_file.hpp"

namespace lightq::log {

/// Fails if the disk could not read some of the bytes in [begin, end) that the scanner needed. They may be
/// durable messages. They are not damage, and are neither wiped nor overwritten, because the disk may still
/// return them later. Only a repair gives them up. Errors: io_error.
Result<void> check_readable(const std::string& path, const SegmentScanner& scanner, std::uint64_t begin,
                            std::uint64_t end);
/// Fails if the scanner has found a batch of a newer version.
Result<void> check_known(const std::string& path, const SegmentScanner& scanner);
/// Fails if any batch of the file before `limit` is of a newer version.
Result<void> check_all_known(const std::string& path, File& file, const SegmentHeader& header,
                             std::uint64_t limit);
/// Overwrites all bytes from `begin` on with zeros, unless they are zeros, and syncs that. Leaves blocks that
/// cannot be read.
Result<void> wipe_tail(SegmentFile& segment, std::uint64_t begin, SegmentScanner& scanner);

}  // namespace lightq::log
