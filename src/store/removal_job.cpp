/// Removes the files of a deleted topic. Layer: store.
#include "store/removal_job.hpp"

#include <system_error>

namespace lightq::broker {

Result<void> remove_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  std::filesystem::remove_all(directory, failed);
  if (failed) return Error{ErrorCode::io_error, "cannot remove " + directory.string(), failed.value()};
  return {};
}

void DirectoryRemovalJob::run() {
  result_ = remove_directory(directory_);
}

void StoreRemovalJob::run() {
  result_ = store_->destroy();
  store_.reset();  // closes its files here
}

}  // namespace lightq::broker
