/// Checks, segment by segment, whether a log may be opened with the available storage keys. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

#include "log/format/batch_cipher.hpp"
#include "log/format/segment_format.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// A segment file with a sound header.
struct KeyedSegment {
  const std::string& path;
  File& file;
  const SegmentHeader& header;
  std::uint64_t usable_bytes = 0;  ///< batches end at or before this position
};

/// Checks that `cipher`, the cipher of the segment's log, can decrypt the segment. Null: the log is not
/// encrypted. If the key id was lost, one batch that can be decrypted is enough. Changes nothing. Errors:
/// not_supported, with file and key id.
Result<void> check_segment_key(const KeyedSegment& segment, BatchCipher* cipher);

/// Checks that a segment of an encrypted log is encrypted or empty. A segment in clear was put there by
/// somebody else or is older than the encryption; it is neither delivered nor skipped. Changes nothing.
/// Errors: corrupt, with the file.
Result<void> check_segment_encrypted(const KeyedSegment& segment);

}  // namespace lightq::log
