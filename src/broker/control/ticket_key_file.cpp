/// Layer: control.
#include "broker/control/ticket_key_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "broker/control/private_file.hpp"

namespace lightq::broker {

namespace {

constexpr mode_t open_to_others = 077;

Result<std::unique_ptr<TicketKey>> make_key(const std::filesystem::path& file) {
  auto bytes = TicketKey::random_bytes();
  const auto written = write_file_atomically(file, as_text(bytes), 0600);
  auto key = std::make_unique<TicketKey>(bytes);
  explicit_bzero(bytes.data(), bytes.size());
  if (!written) return written.error();
  return key;
}

/// Reads an open file; closes it.
Result<std::unique_ptr<TicketKey>> read_key(int descriptor, const std::filesystem::path& file) {
  struct stat facts{};
  const bool known = fstat(descriptor, &facts) == 0;
  std::array<std::byte, TicketKey::bytes> bytes{};
  const auto got = read(descriptor, bytes.data(), bytes.size());
  const int number = errno;
  close(descriptor);
  if (!known || got < 0) return Error{ErrorCode::io_error, "cannot read " + file.string(), number};
  if ((facts.st_mode & open_to_others) != 0) {
    explicit_bzero(bytes.data(), bytes.size());
    return Error{ErrorCode::invalid_argument,
                 file.string() + " holds the key of all tickets and is open to other users; chmod 600 it"};
  }
  if (facts.st_size != static_cast<off_t>(bytes.size()) || got != static_cast<ssize_t>(bytes.size())) {
    return Error{ErrorCode::corrupt, file.string() + " is not a ticket key: it has " +
                                         std::to_string(facts.st_size) + " bytes, not " +
                                         std::to_string(bytes.size()) +
                                         "; without it a new one is made, and tickets that are out end"};
  }
  auto key = std::make_unique<TicketKey>(bytes);
  explicit_bzero(bytes.data(), bytes.size());
  return key;
}

}  // namespace

Result<std::unique_ptr<TicketKey>> open_ticket_key(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor >= 0) return read_key(descriptor, file);
  if (errno != ENOENT) return Error{ErrorCode::io_error, "cannot read " + file.string(), errno};
  return make_key(file);
}

}  // namespace lightq::broker
