/// Whether the index files in a log's directory fit their segments. Changes nothing. Layer: log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/finding.hpp"
#include "log/log_survey.hpp"
#include "log/storage.hpp"

namespace lightq::log {

/// Compares the index file beside `segment`, whose batches end there, with what its batch headers say. What
/// is wrong with it; nothing: it is as if made anew, or there is none.
std::optional<Finding> check_index(const SurveyedSegment& segment, Offset end_offset,
                                   std::uint64_t end_position, Storage& storage);

/// The index files that lie beside no segment of `survey` (nor one that has come since).
std::vector<Finding> stray_indexes(const std::string& directory, const LogSurvey& survey, Storage& storage);

}  // namespace lightq::log
