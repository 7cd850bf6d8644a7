/// Finds the directory of a topic's log by the topic's name. Layer: cli.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// Returns the directory of a topic's log: DATA_DIR/topics/ID. Reads the catalogue in the data directory, so
/// it needs no broker, and may run beside one. `chosen`: the data directory; empty: the first of the usual
/// places that has a catalogue. Errors: topic_not_found; invalid_argument (the topic is only in memory, or
/// there is no catalogue); corrupt (the catalogue is damaged); io_error.
Result<std::string> find_topic_directory(const std::string& chosen, const std::string& topic);

}  // namespace lightq::cli
