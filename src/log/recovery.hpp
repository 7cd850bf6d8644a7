/// Opening what an earlier process left: which segments there are, where they end, what is damaged. Explained
/// on an example in docs/log_format.md, "Recovery". Layer: log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "log/batch_cipher.hpp"
#include "log/segment_file.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// A stretch of the log that cannot be delivered.
struct DamagedRange {
  std::string file;  ///< where; for a missing file, the one before the gap
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;  ///< equal to begin_position: a file is missing here
  Offset first;
  Offset next;  ///< one past the last message lost

  [[nodiscard]] std::uint64_t messages() const { return distance(first, next); }
};

/// What opening a log found.
struct RecoveryReport {
  std::size_t segments = 0;
  std::uint64_t messages = 0;       ///< first_offset to next_offset, without the damaged and the gaps
  bool closed = false;              ///< the log had been closed, or ends in a full segment that is on disk
  bool closed_for_good = false;     ///< it had been closed, and will be found so after a power cut, too
  std::uint64_t scanned_bytes = 0;  ///< looked at past the newest checkpoint, where it had not
  std::uint64_t bytes_cut = 0;      ///< of an append that had not been completed: the torn tail
  std::string cut_file;
  std::vector<DamagedRange> damaged;
  std::uint64_t damaged_messages = 0;
  std::uint64_t gap_messages = 0;  ///< lost before, and stated so by a repair: no damage any more

  [[nodiscard]] bool clean() const { return bytes_cut == 0 && damaged.empty(); }
  /// One sentence for a log file; names the first damaged range.
  [[nodiscard]] std::string text() const;
};

/// The segments of a directory, oldest first, and the report.
struct RecoveredSegments {
  std::deque<std::unique_ptr<SegmentFile>> segments;  ///< only the last may be unsealed
  std::uint32_t batch_mask = 0;                       ///< of the newest segment; 0: none
  std::uint64_t incarnation = 0;                      ///< 0: no segments
  Offset durable;                                     ///< everything before it was known to be on disk
  RecoveryReport report;
  std::unique_ptr<BatchCipher> cipher;  ///< null: there were no segments, or no ciphers
};

/// Whose a log is to be.
struct ExpectedLog {
  using Names = std::map<std::uint32_t, std::string>;  ///< by log id

  std::uint32_t id = 0;          ///< the upper half of its incarnation; 0: whichever is there
  const Names* names = nullptr;  ///< of whom other logs are, for the error; null: not known
};

/// Reads the directory of a log; none is an empty log. Scans what lies past the newest checkpoint of each
/// segment that has no seal, unless the log was closed. Cuts and wipes a torn tail; a segment that was begun
/// without its name gets it, other leftovers of preparing are removed; nothing else on disk is changed. All
/// of that after everything was looked at: in a log that is refused, nothing is changed. `ciphers`: of what
/// is encrypted; null: nothing is to be. Nothing of a segment that cannot be decrypted is changed, nor of
/// another log than the one expected. Errors: foreign_format (names the file), corrupt (two files claim the
/// same offsets, or it belongs to another topic), io_error; not_supported where what a segment was encrypted
/// with is not there (names file and key); corrupt, too, where one is not encrypted though there are ciphers.
Result<RecoveredSegments> recover_segments(const std::string& directory, Storage& storage,
                                           const BatchCiphers* ciphers = nullptr,
                                           const ExpectedLog& expected = {});

}  // namespace lightq::log
