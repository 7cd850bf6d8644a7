/// Which segments there are in a log's directory, by name or without one. Layer: log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/storage.hpp"

namespace lightq::log {

/// A log's segments by their first offsets, ascending.
struct ListedSegments {
  std::vector<Offset> offsets;
  std::optional<Offset> unnamed;  ///< the last of them, if that has or had just now no name yet
};

/// Also of a log that another process writes: none is missing in between. Those that were begun during the
/// look may be left out. Errors: io_error.
Result<ListedSegments> list_segments(const std::string& directory, Storage& storage);

/// The first offsets of the segments that have a name, ascending. Errors: io_error.
Result<std::vector<Offset>> list_named_segments(const std::string& directory, Storage& storage);

}  // namespace lightq::log
