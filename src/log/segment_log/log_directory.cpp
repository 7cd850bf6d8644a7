/// Makes, syncs and removes the directory of a segment log. Layer: log.
#include "log/segment_log/log_directory.hpp"

#include <algorithm>

#include "log/subdirectories.hpp"

namespace lightq::log {

namespace {
/// Returns true if a name is that of a directory: left by a repair, of carried messages, or of delayed ones.
bool is_subdirectory(const std::string& name) {
  return name.starts_with(damaged_prefix) || name == carried_directory_name || name == delayed_directory_name;
}
}  // namespace

Result<void> LogDirectory::make() {
  if (made_) return {};
  if (auto made = storage_.make_directory(path_); !made) return made;
  parent_unsynced_ = true;
  made_ = true;
  return {};
}

Result<void> LogDirectory::remove() {
  const auto left = list_if_there(path_, storage_);
  if (!left) return left.error();
  if (left->empty() && !made_) return {};
  for (const std::string& name : *left) {
    if (is_subdirectory(name)) {
      remove_files(path_of(name), storage_);
      continue;
    }
    if (auto removed = storage_.unlink(path_of(name)); !removed) return removed;
  }
  return storage_.remove_directory(path_);
}

SegmentWork LogDirectory::new_work() const {
  SegmentWork work;
  work.name = name_;
  return work;
}

void LogDirectory::add_syncs(SegmentWork& work) const {
  work.rolls = rolls_;
  if (synced_rolls_ != rolls_) work.sync_directories.push_back(path_);
  if (parent_unsynced_) work.sync_directories.push_back(parent_of(path_));
}

void LogDirectory::note_synced(const SegmentWork& work) {
  synced_rolls_ = std::max(synced_rolls_, work.rolls);
  if (work.sync_directories.size() == 2) parent_unsynced_ = false;
}

}  // namespace lightq::log
