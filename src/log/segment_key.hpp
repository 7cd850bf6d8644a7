/// Whether a log may be opened with the keys that are there, segment by segment. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

#include "log/batch_cipher.hpp"
#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// A segment file whose header is sound.
struct KeyedSegment {
  const std::string& path;
  File& file;
  const SegmentHeader& header;
  std::uint64_t usable_bytes = 0;  ///< how far batches may reach
};

/// Whether `cipher`, of the segment's log, decrypts what is in it; null: the log is not encrypted. Where the
/// key's id was lost, the batches tell: one that is decrypted is enough. Changes nothing. Error:
/// not_supported, with file and key id.
Result<void> check_segment_key(const KeyedSegment& segment, BatchCipher* cipher);

/// That a segment of an encrypted log is encrypted, or has nothing in it: what was put there, or is from
/// before, is neither given out nor passed over. Changes nothing. Error: corrupt, with the file.
Result<void> check_segment_encrypted(const KeyedSegment& segment);

}  // namespace lightq::log
