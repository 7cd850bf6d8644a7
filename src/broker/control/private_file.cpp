/// Layer: control.
#include "broker/control/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace lightq::broker {

namespace {

Error failed(const std::filesystem::path& path, int number) {
  const auto code = number == ENOSPC ? ErrorCode::no_space : ErrorCode::io_error;
  return {code, "cannot write " + path.string(), number};
}

/// Writes and syncs; answers errno, 0 if all went well.
int write_all(int descriptor, std::string_view text, mode_t mode) {
  if (fchmod(descriptor, mode) != 0) return errno;
  while (!text.empty()) {
    const auto bytes = write(descriptor, text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return fsync(descriptor) == 0 ? 0 : errno;
}

}  // namespace

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  const auto unfinished = path.string() + ".new";
  unlink(unfinished.c_str());
  const int file = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return failed(path, errno);
  int number = write_all(file, text, mode);
  if (close(file) != 0 && number == 0) number = errno;
  if (number == 0 && rename(unfinished.c_str(), path.c_str()) != 0) number = errno;
  if (number != 0) {
    unlink(unfinished.c_str());
    return failed(path, number);
  }
  const int directory = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return failed(path, errno);
  if (fsync(directory) != 0) number = errno;
  close(directory);
  if (number != 0) return failed(path, number);
  return {};
}

}  // namespace lightq::broker
