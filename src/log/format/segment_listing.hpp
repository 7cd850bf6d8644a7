/// Lists the segments in a log's directory, named or not. Layer: log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "log/storage/storage.hpp"

namespace lightq::log {

/// The segments of a log, by their first offsets, ascending.
struct ListedSegments {
  std::vector<Offset> offsets;
  std::optional<Offset> unnamed;  ///< the last of `offsets`, if it has no name yet or got it during the call
};

/// Lists the segments of a log, also while another process writes it. The list has no gap, but may lack
/// segments that were begun during the call. Errors: io_error, also if the directory does not exist.
Result<ListedSegments> list_segments(const std::string& directory, Storage& storage);

/// Returns the first offsets of the segment files among `names`, ascending.
std::vector<Offset> named_segments(const std::vector<std::string>& names);

/// Returns the first offsets of the segments that have a name, ascending. Errors: io_error, also if the
/// directory does not exist.
Result<std::vector<Offset>> list_named_segments(const std::string& directory, Storage& storage);

}  // namespace lightq::log
