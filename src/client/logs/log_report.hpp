/// Formats findings and segments for the commands on logs. Layer: cli.
#pragma once

#include <string>

#include "log/tools/inspect.hpp"

namespace lightq::cli {

/// Returns one object: `{"kind":"damaged",…}`.
std::string json_of(const log::Finding& finding);
std::string json_of(const log::SegmentSummary& summary);
/// Returns one line without a line end: name, offsets, batches, bytes, state.
std::string line_of(const log::SegmentSummary& summary);

}  // namespace lightq::cli
