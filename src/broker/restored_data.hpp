/// Prepares a data directory that was restored from a backup. Layer: broker.
#pragma once

#include <filesystem>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"

namespace lightq::broker {

/// If the data directory contains the file `restored`, marks every topic's log as restored, and removes the
/// ticket key and then the file. So the topics begin new lives (LogLives), and no ticket from after the
/// backup is valid for a new topic or user that gets the same id. A start that is interrupted does all of it
/// again. If only the log of the catalogue has the mark, all tickets end. Does nothing without a mark.
/// Requires: this process owns the directory, and no log or key in it is open. Errors: io_error, no_space.
Result<void> prepare_restored_data(const std::filesystem::path& data_dir, LogSink& sink);

}  // namespace lightq::broker
