/// The newest version of LightQ that has opened a data directory. Layer: broker.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Returns true if both are MAJOR.MINOR.PATCH, and `version` is newer than `other`.
bool is_newer_version(std::string_view version, std::string_view other);

/// Returns the version in DIRECTORY/version if it is newer than this program's; nothing otherwise, and if
/// there is no such file, or another text in it.
std::optional<std::string> newer_version_in(const std::filesystem::path& directory);

/// Writes this program's version to DIRECTORY/version, unless that has the same or a newer one. Errors:
/// io_error, no_space.
Result<void> record_version(const std::filesystem::path& directory);

/// Returns `error` with the version that wrote the directory, if a newer version is the reason.
Error with_writer(Error error, const std::optional<std::string>& newer);

}  // namespace lightq::broker
