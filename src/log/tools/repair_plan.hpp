/// Plans a repair: which messages of a damaged log can be saved, and which files must be rewritten. Layer:
/// tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/tools/log_survey.hpp"
#include "log/tools/segment_walk.hpp"

namespace lightq::log {

/// A contiguous run of sound messages in one file.
struct SoundPiece {
  Offset first;
  Offset next;
  std::uint64_t begin = 0;  ///< positions in the file
  std::uint64_t end = 0;
  Timestamp newest;
  Offset gap_begin;  ///< offset for the new file's header; 0: no gap before the piece
};

/// A segment file and the plan for it.
struct PlannedSegment {
  SurveyedSegment source;
  std::uint32_t epoch = 0;  ///< of its batches
  std::uint32_t batch_mask = 0;
  std::vector<SoundPiece> pieces;
  bool encrypted = false;  ///< the pieces are encrypted
  bool keep = false;       ///< the file may stay as it is

  /// Returns SegmentHeader::key_id for the files made from the pieces.
  [[nodiscard]] std::uint64_t key_id() const {
    if (source.header) return source.header->key_id;
    return encrypted ? key_id_unknown : 0;
  }
};

/// Messages that are lost for good and that no header states as lost yet.
struct LostRange {
  Offset first;
  Offset next;
};

struct RepairPlan {
  std::vector<PlannedSegment> segments;
  std::vector<LostRange> lost;
  std::uint64_t incarnation = 0;  ///< 0: no file states it any more
  std::uint64_t messages = 0;     ///< number that can be saved
  Offset end;                     ///< end of the last piece
  Offset next;                    ///< offset of the next append; the messages from `end` to here are lost
  bool has_pieces = false;
  bool end_is_kept = false;  ///< an empty last file already records `next`, and may stay

  /// Returns whether an empty last file must record `next`. In place, such a file may exist already; a copy
  /// needs a new one.
  [[nodiscard]] bool needs_end_segment() const { return has_pieces ? end < next : next.value != 0; }
  /// Returns whether a repair in place has no segment to change.
  [[nodiscard]] bool all_kept() const;
};

/// Reads the whole log in `directory` and plans its repair. With `trust_batches`, the batches of a file
/// without a header count as this log's even if nothing confirms it. Errors: foreign_format (another
/// version's file, which is not damaged), io_error.
Result<RepairPlan> plan_repair(const std::string& directory, Storage& storage, bool trust_batches);

}  // namespace lightq::log
