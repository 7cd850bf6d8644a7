/// Opens the segments that an earlier process left: finds which there are, where they end, and which parts
/// are damaged. docs/log_format.md, "Recovery", explains it with an example. Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "log/format/batch_cipher.hpp"
#include "log/segment/segment_file.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// A range of the log that cannot be delivered.
struct DamagedRange {
  std::string file;  ///< the damaged file; for a missing file, the one before the gap
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;  ///< equal to begin_position: a file is missing here
  Offset first;
  Offset next;  ///< one past the last lost message

  [[nodiscard]] std::uint64_t messages() const { return distance(first, next); }
};

/// The result of a recovery.
struct RecoveryReport {
  std::size_t segments = 0;
  std::uint64_t messages = 0;       ///< from first_offset to next_offset, without damaged ranges and gaps
  bool closed = false;              ///< the log was closed, or ends in a full segment that is on disk
  bool closed_for_good = false;     ///< it was closed, and that will still be visible after a power cut
  std::uint64_t scanned_bytes = 0;  ///< past the newest checkpoints, if the log was not closed
  std::uint64_t bytes_cut = 0;      ///< bytes of incomplete appends: the torn tail
  std::string cut_file;
  std::vector<DamagedRange> damaged;
  std::uint64_t damaged_messages = 0;
  std::uint64_t gap_messages = 0;  ///< lost earlier, and a repair has stated that: no damage any more

  [[nodiscard]] bool clean() const { return bytes_cut == 0 && damaged.empty(); }
  /// Returns one sentence for the broker's log, which names the first damaged range.
  [[nodiscard]] std::string text() const;
};

/// The segments of a directory, oldest first, and the report.
struct RecoveredSegments {
  std::deque<std::unique_ptr<SegmentFile>> segments;  ///< only the last may be unsealed
  std::uint32_t batch_mask = 0;                       ///< of the newest segment; 0: none
  std::uint64_t incarnation = 0;                      ///< 0: no segments
  Offset durable;                                     ///< every message before it was known to be on disk
  RecoveryReport report;
  std::unique_ptr<BatchCipher> cipher;  ///< null if there are no segments or no ciphers
};

/// The topic that a log must belong to.
struct ExpectedLog {
  using Names = std::map<std::uint32_t, std::string>;  ///< topic names by log id

  std::uint32_t id = 0;          ///< upper half of the log's incarnation; 0 accepts any
  const Names* names = nullptr;  ///< topics that own other logs, for the error; null: unknown
};

/// Opens the log in `directory`; a missing directory is an empty log. Scans the bytes past the newest
/// checkpoint of each unsealed segment, unless the log was closed. Cuts and wipes a torn tail, renames a
/// segment that was begun without a name, and removes other prepared files; changes nothing else on disk. It
/// reads everything before it changes anything, so a log that is refused stays unchanged. The log is refused
/// if a segment cannot be decrypted, or if it is not the expected one. `ciphers` decrypts the segments; null
/// means that none may be encrypted. Errors: foreign_format (names the file); corrupt (two files have the
/// same offsets, the log belongs to another topic, or a segment is not encrypted although there are ciphers);
/// not_supported if the key of a segment is missing (names file and key); io_error.
Result<RecoveredSegments> recover_segments(const std::string& directory, Storage& storage,
                                           const BatchCiphers* ciphers = nullptr,
                                           const ExpectedLog& expected = {});

}  // namespace lightq::log
