/// Tells a catalogue that a newer version of LightQ wrote. docs/log_format.md, "Newer versions". Layer:
/// control.
#pragma once

#include <filesystem>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Fails, with foreign_format, if the log of a catalogue in `directory` has anything that this version must
/// not pass over. Reads only: opening a log may change it. Whatever else is wrong with it, opening says.
Result<void> check_catalogue_known(const std::filesystem::path& directory);

}  // namespace lightq::broker
