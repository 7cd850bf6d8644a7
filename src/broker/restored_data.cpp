/// Prepares a restored data directory: topics' logs and the ticket key. Layer: broker.
#include "broker/restored_data.hpp"

#include <string>
#include <system_error>

#include "broker/topic_directories.hpp"
#include "log/format/restored_mark.hpp"
#include "log/storage/posix_storage.hpp"

namespace lightq::broker {

namespace {

namespace fs = std::filesystem;

Result<void> remove_durably(const fs::path& file) {
  std::error_code failed;
  fs::remove(file, failed);
  if (failed) return Error{ErrorCode::io_error, "cannot remove " + file.string(), failed.value()};
  return log::PosixStorage().sync_directory(file.parent_path().string());
}

/// Ends all tickets if the catalogue's log is a copy or was repaired: it may give ids again that were in use.
Result<void> prepare_restored_catalogue(const fs::path& data_dir, log::Storage& storage, LogSink& sink) {
  const fs::path catalogue = data_dir / "catalogue";
  const auto names = log::list_if_there(catalogue.string(), storage);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const std::string directory = (catalogue / name).string();
    if (!log::is_marked_restored(directory, storage)) continue;
    if (auto removed = remove_durably(data_dir / "ticket.key"); !removed) return removed;
    if (auto cleared = log::clear_restored(directory, storage); !cleared) return cleared;
    sink.info("the catalogue was restored or repaired: all tickets end");
  }
  return {};
}

}  // namespace

Result<void> prepare_restored_data(const fs::path& data_dir, LogSink& sink) {
  log::PosixStorage storage;
  if (auto prepared = prepare_restored_catalogue(data_dir, storage, sink); !prepared) return prepared;
  if (!log::is_marked_restored(data_dir.string(), storage)) return {};
  const fs::path topics = data_dir / "topics";
  const auto found = topics_with_files(topics);
  if (!found) return found.error();
  for (const TopicId id : *found) {
    const std::string directory = (topics / std::to_string(id.value)).string();
    if (!fs::is_directory(directory) || log::is_marked_restored(directory, storage)) continue;
    if (auto marked = log::mark_restored(directory, storage); !marked) return marked;
  }
  if (auto removed = remove_durably(data_dir / "ticket.key"); !removed) return removed;
  if (auto removed = remove_durably(data_dir / log::restored_name); !removed) return removed;
  sink.info("the data directory was restored: all tickets end, and " + std::to_string(found->size()) +
            " topics begin new incarnations");
  return {};
}

}  // namespace lightq::broker
