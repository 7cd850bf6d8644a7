/// Read-only surveys of the cursors in a log's directory. They change nothing, so another process may have
/// the log open. Layer: tools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/saved_state/unfinished.hpp"
#include "log/storage/storage.hpp"
#include "log/tools/finding.hpp"

namespace lightq::log {

/// A cursor with a readable position.
struct SurveyedCursor {
  std::string file;
  std::string name;
  Offset committed;
  Unfinished unfinished = {committed, {}};  ///< only of a topic: delivered messages that are not processed
  /// Only of an embedded queue: the end of the messages that its reader has received, as it last noted.
  std::optional<Offset> delivered = {};
};

/// The result of a survey.
struct CursorSurvey {
  bool exists = false;            ///< there is at least one file
  bool foreign = false;           ///< the file is sound, but its format is newer; `findings` names it
  std::uint64_t incarnation = 0;  ///< the log's incarnation, from the table; 0 if no table states one
  std::vector<SurveyedCursor> cursors;
  std::vector<Finding> findings;
  /// Why the files, which may be sound, could not be read now (is_shortage). Empty if they could be read.
  std::optional<Error> unavailable = {};

  /// Returns whether all bytes are as they were written.
  [[nodiscard]] bool sound() const { return findings.empty(); }
};

/// Surveys the cursor files of a topic, `cursors.0` and `cursors.1`. Reads up to three times if something
/// looks damaged, because another process may be writing.
CursorSurvey survey_cursor_files(const std::string& directory, Storage& storage);

/// Surveys the cursor table of an embedded queue, `cursors.table`. `incarnation` is that of the log; 0 means
/// to accept the table's own. If the first page is lost, the survey still returns the cursors of that
/// incarnation. Reads up to three times if something looks damaged, because another process may be writing.
CursorSurvey survey_cursor_table(const std::string& directory, Storage& storage, std::uint64_t incarnation);

}  // namespace lightq::log
