/// What of a broken log can be saved, and which of its files need to be written anew for it. Layer: log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/log_survey.hpp"
#include "log/segment_walk.hpp"

namespace lightq::log {

/// Messages of one file that follow each other, all sound.
struct SoundPiece {
  Offset first;
  Offset next;
  std::uint64_t begin = 0;  ///< positions
  std::uint64_t end = 0;
  Timestamp newest;
  Offset gap_begin;  ///< what its new header has to state; 0: no gap before it
};

/// A file and what to do with it.
struct PlannedSegment {
  SurveyedSegment source;
  std::uint32_t epoch = 0;  ///< of its batches
  std::uint32_t batch_mask = 0;
  std::vector<SoundPiece> pieces;
  bool encrypted = false;  ///< they are
  bool keep = false;       ///< it may stay as it is

  /// SegmentHeader::key_id of what is made of the pieces.
  [[nodiscard]] std::uint64_t key_id() const {
    if (source.header) return source.header->key_id;
    return encrypted ? key_id_unknown : 0;
  }
};

/// Messages lost for good, which no header states yet.
struct LostRange {
  Offset first;
  Offset next;
};

struct RepairPlan {
  std::vector<PlannedSegment> segments;
  std::vector<LostRange> lost;
  std::uint64_t incarnation = 0;  ///< 0: no file tells it any more
  std::uint64_t messages = 0;     ///< that are saved
  Offset end;                     ///< of the last piece
  Offset next;                    ///< the offset that the next append gets; beyond `end`: the rest is lost
  bool has_pieces = false;
  bool end_is_kept = false;  ///< an empty last file remembers `next` already, and may stay

  /// An empty last file has to remember `next`: there may be one already, which a new log does not get.
  [[nodiscard]] bool needs_end_segment() const { return has_pieces ? end < next : next.value != 0; }
  /// Nothing is to be done in place.
  [[nodiscard]] bool all_kept() const;
};

/// Reads the whole log in `directory`. `trust_batches`: take the batches of a file without a header for this
/// log's where nothing shows it. Errors: foreign_format (of another version: not broken), io_error.
Result<RepairPlan> plan_repair(const std::string& directory, Storage& storage, bool trust_batches);

}  // namespace lightq::log
