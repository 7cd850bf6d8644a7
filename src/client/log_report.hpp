/// What the commands on logs print of findings and segments. Layer: cli.
#pragma once

#include <string>

#include "log/inspect.hpp"

namespace lightq::cli {

/// `{"kind":"damaged",…}`
std::string json_of(const log::Finding& finding);
std::string json_of(const log::SegmentSummary& summary);
/// One line without its end: name, offsets, batches, bytes, state.
std::string line_of(const log::SegmentSummary& summary);

}  // namespace lightq::cli
