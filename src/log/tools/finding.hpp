/// The findings of an inspection of a log. Layer: tools.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

namespace lightq::log {

/// One irregularity of a log, or one fact about it that is worth a report.
struct Finding {
  enum class Kind {
    damaged,     ///< bytes that fail their checks, or are missing
    unreadable,  ///< bytes for which the disk reports an error
    header,      ///< a segment file with a lost first page
    foreign,     ///< a segment file or batch of another version; `detail` describes it
    stranger,    ///< a segment file of another log
    misnamed,    ///< a segment file that belongs under another name
    overlap,     ///< a segment file that begins before the previous one ends
    missing,     ///< messages between two files: a file is missing
    seal,        ///< a seal that fails its checks; nothing is lost by it
    cursors,     ///< no cursor file is sound, or a cursor table is not sound as a whole
    cursor,      ///< a cursor of a sound cursor table has lost its position
    producers,   ///< no producer file is sound; no message is lost by it
    forged,      ///< a batch that was not encrypted for its place with its key
    mixed,       ///< an unencrypted segment file among encrypted ones, or the reverse
    torn,        ///< no damage: an unfinished append, or an unfinished write of cursors or producers
    ahead,       ///< no damage: a cursor past the end of the log, which counts as the end
    gap,         ///< no damage: a repair has stated that these messages are lost
    copy,        ///< no damage: a bad part of a cursor that has another sound copy
    index,       ///< no damage: an index file that does not fit its segment; it is rebuilt when needed
  };
  Kind kind = Kind::damaged;
  std::string file;
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
  Offset first;
  Offset next;         ///< equal to `first` if the affected messages are unknown
  std::string detail;  ///< further explanation; may be empty

  [[nodiscard]] bool is_damage() const { return kind < Kind::torn; }
  [[nodiscard]] std::uint64_t messages() const { return distance(first, next); }
  /// Returns one sentence with file, positions and offsets.
  [[nodiscard]] std::string text() const;
};
/// Returns the word for a kind in reports: `damaged`, `missing`.
std::string_view to_word(Finding::Kind kind);

}  // namespace lightq::log
