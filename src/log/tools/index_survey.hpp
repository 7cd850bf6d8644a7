/// Checks whether the index files in a log's directory fit their segments. Changes nothing. Layer: tools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/storage/storage.hpp"
#include "log/tools/finding.hpp"
#include "log/tools/log_survey.hpp"

namespace lightq::log {

/// Compares the index file of `segment` with an index rebuilt from its batch headers. `end_offset` and
/// `end_position` are the end of the segment's batches. Returns the difference, or nothing if the two agree
/// or there is no index file.
std::optional<Finding> check_index(const SurveyedSegment& segment, Offset end_offset,
                                   std::uint64_t end_position, Storage& storage);

/// Returns the index files for which neither `survey` nor, by now, the directory has a segment.
std::vector<Finding> stray_indexes(const std::string& directory, const LogSurvey& survey, Storage& storage);

}  // namespace lightq::log
