/// Marks a log that is a copy or was repaired, so that a start begins another life of it. Layer: log.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

#include "log/storage/storage.hpp"

namespace lightq::log {

/// The name of the mark: an empty file in the directory of a log that is a copy or was repaired. The original
/// may have had more messages, which clients have seen. So a start of the broker that finds the mark at a
/// topic's log begins another life, then removes the mark. In a data directory, a file of this name marks all
/// its topics.
inline constexpr const char* restored_name = "restored";

/// Creates the mark and makes it survive a power cut. Errors: no_space, io_error.
Result<void> mark_restored(const std::string& directory, Storage& storage);
[[nodiscard]] bool is_marked_restored(const std::string& directory, Storage& storage);
/// Removes the mark. If a power cut brings it back, the next start only begins one more life. Errors:
/// io_error.
Result<void> clear_restored(const std::string& directory, Storage& storage);

}  // namespace lightq::log
