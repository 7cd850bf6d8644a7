/// Jobs that remove the files of a deleted topic. Layer: store.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "store/topic_store.hpp"

namespace lightq::broker {

/// Removes the directory and everything in it. Success also if there is none. Errors: io_error.
Result<void> remove_directory(const std::filesystem::path& directory);

/// Removes a topic's files on the disk's thread, because there may be thousands.
class RemovalJob : public log::DiskJob {
 public:
  void finish() override {}
  /// Returns the result of the removal: success also if there were no files. Requires: `run` has returned.
  [[nodiscard]] const Result<void>& result() const { return result_; }

 protected:
  Result<void> result_;
};

/// Removes the directory of a topic that could not be opened.
class DirectoryRemovalJob final : public RemovalJob {
 public:
  explicit DirectoryRemovalJob(std::filesystem::path directory) : directory_(std::move(directory)) {}
  void run() override;

 private:
  std::filesystem::path directory_;
};

/// Removes everything that a deleted topic's store has stored.
class StoreRemovalJob final : public RemovalJob {
 public:
  explicit StoreRemovalJob(std::unique_ptr<TopicStore> store) : store_(std::move(store)) {}
  void run() override;

 private:
  std::unique_ptr<TopicStore> store_;
};

}  // namespace lightq::broker
