/// Layer: control.
#include "broker/control/admin_account.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_fields.hpp>

#include "broker/control/password_hash.hpp"
#include "broker/control/private_file.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t password_bytes = 32;
constexpr std::size_t file_bytes_max = 8 * limits::KiB;

Result<AdminAccount> make_account(const std::filesystem::path& file) {
  auto password = random_text(password_bytes);
  protocol::detail::OrderedJson document;
  document["admin_user_id"] = first_admin_user_id;
  document["admin_password"] = password;
  auto text = protocol::detail::dump_and_wipe(document);
  text += '\n';
  const auto written = write_file_atomically(file, text, 0600);
  wipe_text(text);
  AdminAccount account{first_admin_user_id, Secret(password), true};
  wipe_text(password);
  if (!written) return written.error();
  return account;
}

/// Reads an open file; closes it.
Result<AdminAccount> read_account(int descriptor, const std::filesystem::path& file) {
  struct stat facts{};
  const bool known = fstat(descriptor, &facts) == 0;
  std::string text(file_bytes_max, '\0');
  const auto bytes = read(descriptor, text.data(), text.size());
  const int number = errno;
  close(descriptor);
  if (!known || bytes < 0) return Error{ErrorCode::io_error, "cannot read " + file.string(), number};
  if (auto fault = private_file_fault(facts, file.string(), "the administrator's password")) {
    wipe_text(text);
    return *std::move(fault);
  }
  text.resize(static_cast<std::size_t>(bytes));
  auto found = protocol::parse_admin_file(text);
  wipe_text(text);
  if (!found)
    return Error{ErrorCode::corrupt, file.string() + " does not hold an admin_user_id and password"};
  AdminAccount account{found->user_id, Secret(found->password), false};
  wipe_text(found->password);
  return account;
}

}  // namespace

Result<AdminAccount> open_admin_account(const std::filesystem::path& file, Secret given) {
  if (!given.empty()) return AdminAccount{first_admin_user_id, std::move(given), false};
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor >= 0) return read_account(descriptor, file);
  if (errno != ENOENT) return Error{ErrorCode::io_error, "cannot read " + file.string(), errno};
  return make_account(file);
}

}  // namespace lightq::broker
