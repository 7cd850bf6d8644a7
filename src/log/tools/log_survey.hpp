/// Surveys a log's directory: its segment files in order, as their first pages describe them. Changes
/// nothing, so another process may have the log open. Layer: tools.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/format/segment_format.hpp"
#include "log/storage/storage.hpp"

namespace lightq::log {

/// The state of a segment file's first page.
enum class PageState {
  sound,       ///< a header of this log that fits the file's name
  blank,       ///< never written: from an append that a power cut undid, or zeroed
  damaged,     ///< its checksum fails, or the file ends within it
  unreadable,  ///< the disk reports an error
  foreign,     ///< sound, but of another version or byte order
  misnamed,    ///< sound, but with another first offset than the file's name
  stranger,    ///< sound, but of another log
};

/// A segment file and the content of its first page.
struct SurveyedSegment {
  std::string path;
  Offset name_offset;
  std::uint64_t size_bytes = 0;
  PageState state = PageState::damaged;
  std::optional<SegmentHeader> header;  ///< if sound, misnamed or of another log; its first offset is known
  std::optional<SegmentSeal> seal;      ///< also without a header, if the seal is of this log
  std::string unknown = {};             ///< if foreign: one sentence that names the unknown part
  bool seal_damaged = false;            ///< the bytes of the seal are neither zero nor a seal
  std::uint32_t epoch = 0;              ///< the header's, else the seal's; 0 if there is neither
  std::uint32_t earlier_epoch = 0;  ///< if blank: the epoch of the file's earlier use, from its header; else
                                    ///< 0
  std::optional<std::uint32_t> batch_mask = {};  ///< the header's, also of an earlier use; empty if lost
  std::uint64_t incarnation = 0;                 ///< the header's, else the seal's; 0: neither

  /// Returns the segment's first offset in the log.
  [[nodiscard]] Offset first_offset() const { return header ? header->first_offset : name_offset; }
  /// Returns the marks that identify this log's batches in the file; without a header, those that are
  /// possible.
  [[nodiscard]] BatchMarks marks() const {
    const Epochs own{epoch, epoch};
    const Epochs possible = earlier_epoch != 0 ? Epochs::since(earlier_epoch) : Epochs::any();
    return {epoch != 0 ? own : possible, batch_mask};
  }
  /// Returns the position that no batch reaches beyond.
  [[nodiscard]] std::uint64_t limit() const;
  /// Returns the file's name without its directory; for a file that has no segment name yet, its future name.
  [[nodiscard]] std::string name() const { return segment_name(name_offset); }
  /// Returns the path under `name()`.
  [[nodiscard]] std::string named_path() const { return path.substr(0, path.find_last_of('/') + 1) + name(); }
};

/// The result of a survey of a log's directory.
struct LogSurvey {
  std::vector<SurveyedSegment> segments;  ///< by first offset, then by name
  std::uint64_t incarnation = 0;          ///< that of most files; 0 if no file states one
};

/// Surveys every segment file in `directory`; without any, the survey is empty. Files that disappear
/// meanwhile are left out. If the last file disappears, the survey starts again, up to 16 times. Errors:
/// io_error if the directory does not exist or cannot be listed, or a file cannot be opened; busy if the
/// last file disappeared each time.
Result<LogSurvey> survey_log(const std::string& directory, Storage& storage);

/// Opens the file of `segment`, also if it received its name after the survey. Errors: io_error.
Result<std::unique_ptr<File>> open_surveyed(const SurveyedSegment& segment, Storage& storage);

/// Returns true if the log has dropped `segment` since the survey. The log may have recycled the file then,
/// so nothing read from it counts.
bool is_dropped(const SurveyedSegment& segment, Storage& storage);

}  // namespace lightq::log
