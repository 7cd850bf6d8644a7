/// Creates, finds and removes the mark of a restored log. Layer: log.
#include "log/format/restored_mark.hpp"

namespace lightq::log {

Result<void> mark_restored(const std::string& directory, Storage& storage) {
  const auto file = storage.open(directory + "/" + restored_name, OpenMode::create);
  if (!file) return file.error();
  return storage.sync_directory(directory);
}

bool is_marked_restored(const std::string& directory, Storage& storage) {
  return may_exist(directory + "/" + restored_name, storage);
}

Result<void> clear_restored(const std::string& directory, Storage& storage) {
  return storage.unlink(directory + "/" + restored_name);
}

}  // namespace lightq::log
