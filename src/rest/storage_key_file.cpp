/// Layer: rest.
#include "rest/storage_key_file.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include <lightq/base/private_file.hpp>

namespace lightq::rest {

namespace {

/// Fills `text` from the file as far as it goes; answers errno, 0 if all went well.
int read_into(int descriptor, std::string& text, std::size_t& bytes) {
  while (bytes < text.size()) {
    const auto got = read(descriptor, text.data() + bytes, text.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    bytes += static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<StorageKeys>> read_storage_keys(const std::filesystem::path& file) {
  const std::string name = file.string();
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return Error{ErrorCode::io_error, "cannot read the storage keys in " + name, errno};
  struct stat facts{};
  std::string text(limits::storage_key_text_bytes_max + 1, '\0');
  std::size_t bytes = 0;
  int number = fstat(descriptor, &facts) == 0 ? 0 : errno;
  // Of a pipe what comes is waited for, not whoever opens it.
  if (number == 0) number = fcntl(descriptor, F_SETFL, O_RDONLY) == 0 ? 0 : errno;
  std::optional<Error> fault;
  if (number == 0) fault = private_file_fault(facts, name, "the storage keys");
  if (number == 0 && !fault) number = read_into(descriptor, text, bytes);
  close(descriptor);
  Result<std::unique_ptr<StorageKeys>> keys =
      Error{ErrorCode::io_error, "cannot read the storage keys in " + name, number};
  if (fault) {
    keys = *std::move(fault);
  } else if (number == 0 && bytes > limits::storage_key_text_bytes_max) {
    keys = Error{ErrorCode::invalid_argument, name + " has more than " +
                                                  std::to_string(limits::storage_key_text_bytes_max) +
                                                  " bytes, which no file of storage keys has"};
  } else if (number == 0) {
    keys = StorageKeys::parse(std::string_view(text).substr(0, bytes), name);
  }
  explicit_bzero(text.data(), text.size());
  return keys;
}

}  // namespace lightq::rest
