/// Finds the directory of a topic's log by the topic's name. Layer: cli.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// Returns the data directory of this machine's broker. `chosen`: that directory; empty: the first of the
/// usual places that has a catalogue. Errors: invalid_argument (there is no catalogue).
Result<std::filesystem::path> find_data_directory(const std::string& chosen);

/// Returns the newest complete log of the catalogue: the one with the highest number. Nothing if there is
/// none.
std::optional<std::filesystem::path> newest_catalogue(const std::filesystem::path& data_dir);

/// Returns the directory of a topic's log: DATA_DIR/topics/ID. Reads the catalogue in the data directory, so
/// it needs no broker, and may run beside one. `chosen`: the data directory; empty: the first of the usual
/// places that has a catalogue. Errors: topic_not_found; invalid_argument (the topic is only in memory, or
/// there is no catalogue); corrupt (the catalogue is damaged); io_error.
Result<std::string> find_topic_directory(const std::string& chosen, const std::string& topic);

}  // namespace lightq::cli
