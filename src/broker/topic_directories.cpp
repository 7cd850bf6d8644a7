/// Finds topics' directories, deletes those of removed topics and reports unknown ones. Layer: broker.
#include "broker/topic_directories.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "log/storage/posix_storage.hpp"

namespace lightq::broker {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t topic_id_max = std::uint64_t{1} << 62;
constexpr std::size_t named_max = 10;

std::optional<TopicId> topic_id_of(const std::string& name) {
  TopicId id;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), id.value);
  const bool is_id = parsed.ec == std::errc{} && id.value < topic_id_max && std::to_string(id.value) == name;
  return is_id && id.value != 0 ? std::optional(id) : std::nullopt;
}

/// Deletes a directory. Returns true if the files are gone.
bool remove_files(const fs::path& directory, LogSink& sink) {
  std::error_code failed;
  fs::remove_all(directory, failed);
  if (failed)
    sink.error("cannot remove the files of a deleted topic: " + directory.string() + ": " + failed.message() +
               "; the next start tries again");
  else
    sink.info("removed the files of a deleted topic: " + directory.string());
  return !failed;
}

void report_unknown(const fs::path& topics, const std::vector<TopicId>& unknown, LogSink& sink) {
  std::string ids;
  for (std::size_t i = 0; i < std::min(unknown.size(), named_max); ++i)
    ids += (i == 0 ? "" : ", ") + std::to_string(unknown[i].value);
  if (unknown.size() > named_max) ids += " and more";
  sink.error(
      "the catalogue has no record of " + std::to_string(unknown.size()) + " topics with files in " +
      topics.string() + ": " + ids + ". The files are kept; `lightq log dump " +
      (topics / std::to_string(unknown[0].value)).string() +
      "` prints the messages. To bring the topics back, see \"A topic that the catalogue has lost\" in "
      "docs/reliability.md; to give them up, remove the directories");
}

}  // namespace

Result<std::vector<TopicId>> topics_with_files(const fs::path& topics) {
  std::vector<TopicId> found;
  std::error_code code;
  for (fs::directory_iterator at(topics, code), end; !code && at != end; at.increment(code)) {
    if (const auto id = topic_id_of(at->path().filename().string())) found.push_back(*id);
  }
  if (code) return Error{ErrorCode::io_error, "cannot read the directory " + topics.string(), code.value()};
  std::ranges::sort(found, {}, &TopicId::value);
  return found;
}

Result<void> remove_deleted_topics(const fs::path& topics, const std::vector<TopicId>& found,
                                   Catalogue& catalogue, LogSink& sink) {
  std::vector<TopicId> unknown;
  std::vector<TopicId> gone;
  for (const TopicId id : found) {
    if (catalogue.state().find(id) != nullptr) continue;
    if (!catalogue.state().removed_topics().contains(id.value))
      unknown.push_back(id);
    else if (remove_files(topics / std::to_string(id.value), sink))
      gone.push_back(id);
  }
  if (!unknown.empty()) report_unknown(topics, unknown, sink);
  if (gone.empty()) return {};
  // A power cut must not undo the removals once the catalogue has forgotten them.
  if (auto synced = log::PosixStorage().sync_directory(topics.string()); !synced) return synced;
  for (const TopicId id : gone) catalogue.forget_removed_topic(id);
  return {};
}

}  // namespace lightq::broker
