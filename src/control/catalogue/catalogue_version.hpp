/// Detects a catalogue that a newer version of LightQ wrote. See docs/log_format.md, "Newer versions". Layer:
/// control.
#pragma once

#include <filesystem>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Fails with foreign_format if the catalogue's log in `directory` contains anything that this version must
/// not ignore. Only reads, because opening a log may change it. Opening the catalogue reports every other
/// fault.
Result<void> check_catalogue_known(const std::filesystem::path& directory);

}  // namespace lightq::broker
