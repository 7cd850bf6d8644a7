/// Prepares a restored data directory: topics' logs and the ticket key. Layer: broker.
#include "broker/restored_data.hpp"

#include <string>
#include <system_error>

#include "broker/topic_directories.hpp"
#include "log/posix_storage.hpp"
#include "log/segment_copy.hpp"

namespace lightq::broker {

namespace {

namespace fs = std::filesystem;

Result<void> remove_durably(const fs::path& file) {
  std::error_code failed;
  fs::remove(file, failed);
  if (failed) return Error{ErrorCode::io_error, "cannot remove " + file.string(), failed.value()};
  return log::PosixStorage().sync_directory(file.parent_path().string());
}

}  // namespace

Result<void> prepare_restored_data(const fs::path& data_dir, LogSink& sink) {
  log::PosixStorage storage;
  if (!log::is_marked_restored(data_dir.string(), storage)) return {};
  const fs::path topics = data_dir / "topics";
  const auto found = topics_with_files(topics);
  if (!found) return found.error();
  for (const TopicId id : *found) {
    if (auto marked = log::mark_restored((topics / std::to_string(id.value)).string(), storage); !marked)
      return marked;
  }
  if (auto removed = remove_durably(data_dir / "ticket.key"); !removed) return removed;
  if (auto removed = remove_durably(data_dir / log::restored_name); !removed) return removed;
  sink.info("the data directory was restored: all tickets end, and " + std::to_string(found->size()) +
            " topics begin new incarnations");
  return {};
}

}  // namespace lightq::broker
