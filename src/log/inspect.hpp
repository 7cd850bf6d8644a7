/// Reads a log from end to end without changing it, and tells what is sound and what is not; beside the
/// process that writes it, if there is one. What `lightq log dump` and `verify` stand on. Layer: log.
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/batch.hpp>

#include "log/log_survey.hpp"
#include "log/segment_scanner.hpp"

namespace lightq::log {

/// Something about a log that is not as it should be, or worth knowing.
struct Finding {
  enum class Kind {
    damaged,     ///< bytes that fail their checks, or are not there
    unreadable,  ///< bytes that the disk gives an error for
    header,      ///< a segment file whose first page is lost
    foreign,     ///< a segment file of another version
    stranger,    ///< a segment file of another log
    misnamed,    ///< a segment file that belongs under another name
    overlap,     ///< a segment file that begins before the one in front of it ends
    missing,     ///< messages between two files: a file is gone
    seal,        ///< a seal that fails its checks; nothing is lost by it
    cursors,     ///< cursor files, of which none is sound
    torn,        ///< no damage: an append, or a write of cursors, that was never completed
    ahead,       ///< no damage: a cursor past the end of the log, which counts as the end
    gap,         ///< no damage: a repair has stated that these messages are gone
  };
  Kind kind = Kind::damaged;
  std::string file;
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
  Offset first;
  Offset next;         ///< first equals next: nobody knows which messages
  std::string detail;  ///< more words; may be empty

  [[nodiscard]] bool is_damage() const { return kind < Kind::torn; }
  [[nodiscard]] std::uint64_t messages() const { return distance(first, next); }
  /// One sentence that names file, positions and offsets.
  [[nodiscard]] std::string text() const;
};
/// A kind's word in reports: `damaged`, `missing`.
std::string_view to_word(Finding::Kind kind);

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
  /// A sound batch; `view` is valid during the call.
  virtual bool on_batch(const ScannedBatch& batch, const BatchView& view) = 0;
  virtual bool on_finding(const Finding& finding) = 0;
  virtual bool on_summary(const SegmentSummary& /*summary*/) { return true; }
};

struct InspectOptions {
  Offset from;                      ///< nothing that ends before it is looked at
  Offset to = {~std::uint64_t{0}};  ///< nothing from here on
  bool with_cursors = false;        ///< look at the cursor files too
};

/// What an inspection came to.
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
  Offset first_offset;
  Offset next_offset;
};

/// Reads the log in `directory`. Errors: io_error, where the directory cannot be listed or a file not be
/// opened. Bytes that cannot be read are findings.
Result<InspectTotals> inspect_log(const std::string& directory, Storage& storage,
                                  const InspectOptions& options, LogVisitor& visitor);

}  // namespace lightq::log
