/// What cursors there are in a log's directory. Changes nothing, so it may be somebody else's log. Layer:
/// log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/finding.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// A cursor whose place is known.
struct SurveyedCursor {
  std::string file;
  std::string name;
  Offset committed;
  std::vector<OffsetRange> acknowledged = {};  ///< besides, of a topic's: ascending
  std::optional<Offset> delivered =
      {};  ///< of an embedded queue's: what its reader has been given, as noted last
};

/// What was found.
struct CursorSurvey {
  bool exists = false;            ///< there is a file at all
  bool foreign = false;           ///< it is of another version, and sound as such: `findings` says so
  std::uint64_t incarnation = 0;  ///< of the log, as a table says; 0: none says any
  std::vector<SurveyedCursor> cursors;
  std::vector<Finding> findings;
  /// Why the files cannot be looked at now, sound as they may be (is_shortage); nothing if they could.
  std::optional<Error> unavailable = {};

  /// There is anything that is not as it was written.
  [[nodiscard]] bool sound() const { return findings.empty(); }
};

/// A topic's: the two files `cursors.0` and `cursors.1`. What looks damaged is looked at again, for somebody
/// may be writing.
CursorSurvey survey_cursor_files(const std::string& directory, Storage& storage);

/// An embedded queue's: `cursors.table`. `incarnation`: the log's; 0: take the table at its word. A table of
/// which the first page is lost still gives the cursors of that incarnation. Looks again as above.
CursorSurvey survey_cursor_table(const std::string& directory, Storage& storage, std::uint64_t incarnation);

}  // namespace lightq::log
