/// What lies in a log's directory: its segment files in order, as their first pages describe them. Changes
/// nothing, so it may be somebody else's log. Layer: log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/segment_format.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// What a segment file's first page is worth.
enum class PageState {
  sound,       ///< a header of this log that fits the name
  blank,       ///< never written: made by an append that a power cut undid, or zeroed
  damaged,     ///< its checksum fails, or the file ends within it
  unreadable,  ///< the disk gives an error
  foreign,     ///< of another version or byte order, and sound as such
  misnamed,    ///< sound, but names another first offset than the file's name
  stranger,    ///< sound, but of another log
};

/// A segment file as it lies there.
struct SurveyedSegment {
  std::string path;
  Offset name_offset;
  std::uint64_t size_bytes = 0;
  PageState state = PageState::damaged;
  std::optional<SegmentHeader> header;  ///< sound, misnamed, stranger; its first offset is known
  std::optional<SegmentSeal> seal;      ///< also without a header, if it is of this log
  std::string unknown = {};             ///< foreign: what this version does not know of it, in a sentence
  bool seal_damaged = false;            ///< there is something in the seal's place, and it is no seal
  std::uint32_t epoch = 0;              ///< the header's, else the seal's; 0: neither is there
  std::uint32_t earlier_epoch = 0;      ///< blank: of the file's earlier use, which the header is of; 0: none
  std::optional<std::uint32_t> batch_mask =
      {};                         ///< the header's, also of the earlier use; nothing: it is lost
  std::uint64_t incarnation = 0;  ///< likewise

  /// Where it belongs in the log.
  [[nodiscard]] Offset first_offset() const { return header ? header->first_offset : name_offset; }
  /// Those that batches of this log have; where there is no header: may have.
  [[nodiscard]] BatchMarks marks() const {
    const Epochs own{epoch, epoch};
    const Epochs possible = earlier_epoch != 0 ? Epochs::since(earlier_epoch) : Epochs::any();
    return {epoch != 0 ? own : possible, batch_mask};
  }
  /// How far batches may reach.
  [[nodiscard]] std::uint64_t limit() const;
  /// The file's name, without its directory; where it was begun without a name: the one that it is to get.
  [[nodiscard]] std::string name() const { return segment_name(name_offset); }
  /// The path under that name.
  [[nodiscard]] std::string named_path() const { return path.substr(0, path.find_last_of('/') + 1) + name(); }
};

/// A log's directory.
struct LogSurvey {
  std::vector<SurveyedSegment> segments;  ///< by first offset, then by name
  std::uint64_t incarnation = 0;          ///< what most files say; 0: none says any
};

/// Looks at every segment file in `directory`; none there is an empty survey. Files that go meanwhile are
/// left out; but where the last one has gone, all is looked at again. Errors: io_error if the directory
/// cannot be listed or a file not be opened; busy where the last one has gone each time.
Result<LogSurvey> survey_log(const std::string& directory, Storage& storage);

/// The file behind `segment`, also if it got its name since it was surveyed. Errors: io_error.
Result<std::unique_ptr<File>> open_surveyed(const SurveyedSegment& segment, Storage& storage);

/// The file behind `segment` has been dropped by its log since it was surveyed, and may be another log's by
/// now: nothing that is read from it counts.
bool is_dropped(const SurveyedSegment& segment, Storage& storage);

}  // namespace lightq::log
