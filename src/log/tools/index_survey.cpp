/// Checks whether the index files in a log's directory fit their segments. Layer: tools.
#include "log/tools/index_survey.hpp"

#include <algorithm>

#include "log/format/segment_index_file.hpp"

namespace lightq::log {

namespace {

Finding finding(const std::string& path, std::string why) {
  return {Finding::Kind::index, path, 0, 0, {}, {}, std::move(why)};
}

}  // namespace

std::optional<Finding> check_index(const SurveyedSegment& segment, Offset end_offset,
                                   std::uint64_t end_position, Storage& storage) {
  const std::string path = parent_of(segment.path) + "/" + segment_index_name(segment.name_offset);
  if (!may_exist(path, storage)) return std::nullopt;
  if (!segment.header || segment.state != PageState::sound) {
    return finding(path, path + " belongs to a segment without a sound first page");
  }
  const IndexedSegment indexed{
      segment.header->epoch, segment.header->incarnation, segment.header->first_offset, end_offset,
      end_position,          segment.header->batch_mask};
  const auto loaded = SegmentIndexFile::load(storage, path, indexed);
  if (!loaded && is_missing(loaded.error())) return std::nullopt;  // removed meanwhile
  if (!loaded) return finding(path, loaded.error().text());
  const auto file = open_surveyed(segment, storage);
  if (!file) return std::nullopt;
  const auto rebuilt = SegmentIndexFile::rebuild(**file, indexed);
  if (rebuilt == nullptr) return std::nullopt;
  const bool agrees = std::ranges::equal((*loaded)->entries(), rebuilt->entries()) &&
                      (*loaded)->newest() == rebuilt->newest();
  if (agrees) return std::nullopt;
  return finding(path, path + " disagrees with its segment");
}

std::vector<Finding> stray_indexes(const std::string& directory, const LogSurvey& survey, Storage& storage) {
  std::vector<Finding> strays;
  const auto names = storage.list(directory);
  if (!names) return strays;
  for (const std::string& name : *names) {
    const auto offset = segment_index_name_offset(name);
    if (!offset) continue;
    const bool known = std::any_of(survey.segments.begin(), survey.segments.end(),
                                   [&](const auto& segment) { return segment.name_offset == *offset; });
    if (known || may_exist(directory + "/" + segment_name(*offset), storage)) continue;
    const std::string path = directory + "/" + name;
    if (may_exist(path, storage)) strays.push_back(finding(path, path + " belongs to no segment"));
  }
  return strays;
}

}  // namespace lightq::log
