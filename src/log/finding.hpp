/// What an inspection of a log has to say. Layer: log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <lightq/base/types.hpp>

namespace lightq::log {

/// Something about a log that is not as it should be, or worth knowing.
struct Finding {
  enum class Kind {
    damaged,     ///< bytes that fail their checks, or are not there
    unreadable,  ///< bytes that the disk gives an error for
    header,      ///< a segment file whose first page is lost
    foreign,     ///< a segment file or a batch of another version; `detail` is the sentence
    stranger,    ///< a segment file of another log
    misnamed,    ///< a segment file that belongs under another name
    overlap,     ///< a segment file that begins before the one in front of it ends
    missing,     ///< messages between two files: a file is gone
    seal,        ///< a seal that fails its checks; nothing is lost by it
    cursors,     ///< cursor files, of which none is sound; a cursor table that is not sound as a whole
    cursor,      ///< a cursor in a table that is, whose place is lost
    producers,   ///< files of a topic's producers, of which none is sound; no message is lost by it
    forged,      ///< a batch that is not what was encrypted in its place
    mixed,       ///< a segment file in clear among encrypted ones, or the other way round
    torn,        ///< no damage: an append, or a write of cursors or producers, that was never completed
    ahead,       ///< no damage: a cursor past the end of the log, which counts as the end
    gap,         ///< no damage: a repair has stated that these messages are gone
    copy,        ///< no damage: something of a cursor that is there more than once, and sound elsewhere
    index,       ///< no damage: an index file that does not fit its segment, and is made anew when needed
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

}  // namespace lightq::log
