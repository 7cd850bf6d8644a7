/// Reads a log from end to end without changing it, and reports sound and damaged parts. A process may be
/// writing the log meanwhile. `lightq log dump` and `lightq log verify` use it. Layer: tools.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/batch.hpp>

#include "log/format/batch_cipher.hpp"
#include "log/format/segment_scanner.hpp"
#include "log/tools/finding.hpp"
#include "log/tools/log_survey.hpp"

namespace lightq::log {

/// The result of reading one segment file.
struct SegmentSummary {
  SurveyedSegment segment;
  std::uint64_t batches = 0;
  std::uint64_t messages = 0;
  Offset end_offset;
  std::uint64_t end_position = 0;
  std::uint64_t torn_bytes = 0;
  std::size_t damages = 0;  ///< number of findings that are damage
  bool dropped = false;     ///< dropped by its log meanwhile; the batches reported before are sound
};

/// Receives the findings and batches of an inspection, in order. If a call returns false, the inspection
/// ends.
class LogVisitor {
 public:
  LogVisitor() = default;
  LogVisitor(const LogVisitor&) = delete;
  LogVisitor& operator=(const LogVisitor&) = delete;
  virtual ~LogVisitor() = default;
  virtual bool on_segment(const SurveyedSegment& /*segment*/) { return true; }
  /// Called for a sound batch, which is decrypted if its key is known. Lifetime: `view` is valid during the
  /// call.
  virtual bool on_batch(const ScannedBatch& batch, const BatchView& view) = 0;
  virtual bool on_finding(const Finding& finding) = 0;
  virtual bool on_summary(const SegmentSummary& /*summary*/) { return true; }
  /// Called when the log has dropped everything reported so far, including the last segment. The inspection
  /// then starts again with the current segments, which begin behind the dropped ones.
  virtual bool on_restart() { return true; }
};

struct InspectOptions {
  Offset from;                            ///< skip segments and batches that end before it
  Offset to = {~std::uint64_t{0}};        ///< stop before this offset
  bool with_cursors = false;              ///< also check the cursor files and the cursor table
  bool with_producers = false;            ///< also check the topic's producer files
  bool with_indexes = false;              ///< also compare index files with segments that are read whole
  const BatchCiphers* ciphers = nullptr;  ///< decrypts and checks encrypted batches; may be null
};

/// The totals of an inspection; after a restart, of its last pass.
struct InspectTotals {
  std::size_t segments = 0;
  std::uint64_t bytes = 0;  ///< of the segment files
  std::uint64_t batches = 0;
  std::uint64_t messages = 0;  ///< sound ones
  std::uint64_t lost_messages = 0;
  std::uint64_t gap_messages = 0;
  std::uint64_t torn_bytes = 0;
  std::size_t damages = 0;
  std::size_t cursors = 0;
  std::size_t producers = 0;            ///< producers that a broker would recognize
  std::uint64_t encrypted_batches = 0;  ///< sound ones
  std::uint64_t decrypted_batches = 0;  ///< of the encrypted ones
  Offset first_offset;
  Offset next_offset;
};

/// Reads the log in `directory` and returns the totals of one pass over it. A pass covers the segments that
/// exist when it begins, up to the end that the log has then or later. Old segments up to the last one that
/// was dropped unread are not counted. Bytes that cannot be read become findings, not errors. Errors:
/// io_error if the directory cannot be listed or a file cannot be opened; busy if in each of 16 passes all
/// segments were dropped before they could be read; not_supported if `options.ciphers` is set and has no key
/// for a segment.
Result<InspectTotals> inspect_log(const std::string& directory, Storage& storage,
                                  const InspectOptions& options, LogVisitor& visitor);

}  // namespace lightq::log
