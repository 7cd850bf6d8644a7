/// Reads a log from end to end without changing it, and tells what is sound and what is not; beside the
/// process that writes it, if there is one. What `lightq log dump` and `verify` stand on. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/batch.hpp>

#include "log/batch_cipher.hpp"
#include "log/finding.hpp"
#include "log/log_survey.hpp"
#include "log/segment_scanner.hpp"

namespace lightq::log {

/// One segment file, once it has been read.
struct SegmentSummary {
  SurveyedSegment segment;
  std::uint64_t batches = 0;
  std::uint64_t messages = 0;
  Offset end_offset;
  std::uint64_t end_position = 0;
  std::uint64_t torn_bytes = 0;
  std::size_t damages = 0;  ///< findings that are damage
  bool dropped = false;     ///< by its log, meanwhile: what was given of it is sound, the rest is gone
};

/// Told what an inspection meets, in order. Each call may end it by answering false.
class LogVisitor {
 public:
  LogVisitor() = default;
  LogVisitor(const LogVisitor&) = delete;
  LogVisitor& operator=(const LogVisitor&) = delete;
  virtual ~LogVisitor() = default;
  virtual bool on_segment(const SurveyedSegment& /*segment*/) { return true; }
  /// A sound batch; `view` is valid during the call. An encrypted one is decrypted where there is a key.
  virtual bool on_batch(const ScannedBatch& batch, const BatchView& view) = 0;
  virtual bool on_finding(const Finding& finding) = 0;
  virtual bool on_summary(const SegmentSummary& /*summary*/) { return true; }
  /// The log has dropped all that was told of so far, its last segment too: what follows is another look, at
  /// the segments that there are now. They begin behind those.
  virtual bool on_restart() { return true; }
};

struct InspectOptions {
  Offset from;                            ///< nothing that ends before it is looked at
  Offset to = {~std::uint64_t{0}};        ///< nothing from here on
  bool with_cursors = false;              ///< look at the cursor files and the cursor table too
  bool with_producers = false;            ///< look at the files of a topic's producers too
  bool with_indexes = false;              ///< compare the index files with the segments read as a whole too
  const BatchCiphers* ciphers = nullptr;  ///< to decrypt, or to check, what is encrypted; null: it stays so
};

/// What an inspection came to; of its last look.
struct InspectTotals {
  std::size_t segments = 0;
  std::uint64_t bytes = 0;  ///< of the segment files
  std::uint64_t batches = 0;
  std::uint64_t messages = 0;  ///< sound
  std::uint64_t lost_messages = 0;
  std::uint64_t gap_messages = 0;
  std::uint64_t torn_bytes = 0;
  std::size_t damages = 0;
  std::size_t cursors = 0;
  std::size_t producers = 0;            ///< that a broker knows from before
  std::uint64_t encrypted_batches = 0;  ///< sound
  std::uint64_t decrypted_batches = 0;  ///< of these
  Offset first_offset;
  Offset next_offset;
};

/// Reads the log in `directory`. The totals are those of one look at it: of the segments that there were
/// then, but for the old ones up to the last that was dropped before it was read, and up to the end that the
/// log had then or later. Errors: io_error, where the directory cannot be listed or a file not be opened;
/// busy, where at each of several looks all segments were dropped before they could be read; not_supported,
/// where there are ciphers and a segment's key is not among them. Bytes that cannot be read are findings.
Result<InspectTotals> inspect_log(const std::string& directory, Storage& storage,
                                  const InspectOptions& options, LogVisitor& visitor);

}  // namespace lightq::log
