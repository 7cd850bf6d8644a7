/// Replaces small files by writing, syncing and renaming a new one, and checks key files that it reads.
/// Layer: access.
#include "access/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include <lightq/base/disk_full.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/base/wipe.hpp>

namespace lightq::broker {

namespace {

Error failed(const std::filesystem::path& path, int number) {
  return {write_error_code(number), "cannot write " + path.string(), number};
}

/// Writes and syncs. Returns errno, or 0 on success.
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

/// Gives the file the owner and the group of the file at `path`, or of the directory to which `path` leads.
/// Returns errno, or 0 on success.
int take_owner(int descriptor, const std::filesystem::path& path) {
  struct stat wanted{};
  struct stat present{};
  if (lstat(path.c_str(), &wanted) != 0 || fstat(descriptor, &present) != 0) return errno;
  if (S_ISLNK(wanted.st_mode)) {
    if (stat(path.c_str(), &wanted) != 0) return errno;
    if (!S_ISDIR(wanted.st_mode)) return ELOOP;
  }
  if (wanted.st_uid == present.st_uid && wanted.st_gid == present.st_gid) return 0;
  return fchown(descriptor, wanted.st_uid, wanted.st_gid) == 0 ? 0 : errno;
}

Error cannot_take_owner(const std::filesystem::path& path, const std::filesystem::path& owner_of,
                        int number) {
  return {ErrorCode::io_error,
          "cannot give the new " + path.string() + " the owner and the group of " + owner_of.string() +
              ", so nothing was changed; run the command as that user or as root",
          number};
}

}  // namespace

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text, mode_t mode,
                                   const std::filesystem::path& owner_of) {
  const auto unfinished = path.string() + ".new";
  unlink(unfinished.c_str());
  const int file = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return failed(path, errno);
  if (const int refused = owner_of.empty() ? 0 : take_owner(file, owner_of); refused != 0) {
    close(file);
    unlink(unfinished.c_str());
    return cannot_take_owner(path, owner_of, refused);
  }
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

namespace {

/// Returns the fault of a key file that was read; nothing if it contains a key.
std::optional<Error> fault_of(const KeyFile& file, const struct stat& facts, ssize_t got, std::size_t bytes) {
  const std::string path = file.path.string();
  if (auto fault = private_file_fault(facts, path, file.holds)) return fault;
  if (facts.st_size == static_cast<off_t>(bytes) && got == static_cast<ssize_t>(bytes)) return std::nullopt;
  return Error{ErrorCode::corrupt,
               path + " is not " + std::string(file.name) + ": it has " + std::to_string(facts.st_size) +
                   " bytes, not " + std::to_string(bytes) +
                   "; if you remove it, the broker creates a new one, and " + std::string(file.loss)};
}

}  // namespace

Result<bool> read_key_file(const KeyFile& file, std::span<std::byte> to) {
  const int descriptor = open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0 && errno == ENOENT) return false;
  if (descriptor < 0) return Error{ErrorCode::io_error, "cannot read " + file.path.string(), errno};
  struct stat facts{};
  const bool known = fstat(descriptor, &facts) == 0;
  const auto got = read(descriptor, to.data(), to.size());
  const int number = errno;
  close(descriptor);
  std::optional<Error> fault;
  if (!known || got < 0) {
    fault = Error{ErrorCode::io_error, "cannot read " + file.path.string(), number};
  } else {
    fault = fault_of(file, facts, got, to.size());
  }
  if (!fault) return true;
  wipe_bytes(to);
  return *fault;
}

Result<void> write_key_file(const KeyFile& file, ByteView key, const std::filesystem::path& owner_of) {
  return write_file_atomically(file.path, as_text(key), 0600, owner_of);
}

}  // namespace lightq::broker
