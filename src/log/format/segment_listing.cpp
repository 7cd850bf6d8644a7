/// Lists the segments in a log's directory. Layer: log.
#include "log/format/segment_listing.hpp"

#include <algorithm>

#include "log/format/segment_format.hpp"
#include "log/format/unnamed_segment.hpp"

namespace lightq::log {

namespace {

constexpr int listings_max = 16;  // each retry means that the log dropped all segments of the listing before

}  // namespace

std::vector<Offset> named_segments(const std::vector<std::string>& names) {
  std::vector<Offset> offsets;
  for (const std::string& name : names) {
    if (const auto offset = segment_name_offset(name)) offsets.push_back(*offset);
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

Result<std::vector<Offset>> list_named_segments(const std::string& directory, Storage& storage) {
  const auto listed = storage.list(directory);
  if (!listed) return listed.error();
  return named_segments(*listed);
}

// A directory listing may miss a name that is created meanwhile, and include a later one. A segment that
// existed before the call is the unnamed one or in the first listing. All segments before the last of these
// had their names before the second listing began.
Result<ListedSegments> list_segments(const std::string& directory, Storage& storage) {
  ListedSegments found;
  for (int listing = 0; listing < listings_max && found.offsets.empty(); ++listing) {
    const auto unnamed = unnamed_segment(directory, {}, storage);
    if (!unnamed) return unnamed.error();
    const auto first = list_named_segments(directory, storage);
    if (!first) return first.error();
    auto second = list_named_segments(directory, storage);
    if (!second) return second.error();
    if (first->empty() && second->empty() && !*unnamed) return found;
    const Offset end = std::max(first->empty() ? Offset{} : first->back(), unnamed->value_or(Offset{}));
    std::erase_if(*second, [&](Offset offset) { return end < offset; });
    found = {std::move(*second), std::nullopt};
    if (!*unnamed || **unnamed < end) continue;
    if (found.offsets.empty() || found.offsets.back() != end) found.offsets.push_back(end);
    found.unnamed = end;
  }
  return found;
}

}  // namespace lightq::log
