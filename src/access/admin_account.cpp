/// Takes the administrator's password that was given, reads it from the account's file, or creates a random
/// one. Layer: access.
#include "access/admin_account.hpp"

#include <cerrno>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_fields.hpp>

#include "access/password_hash.hpp"
#include "access/private_file.hpp"

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

Result<AdminAccount> account_of(std::string text, const std::filesystem::path& file) {
  auto found = protocol::parse_admin_file(text);
  wipe_text(text);
  if (!found)
    return Error{ErrorCode::corrupt, file.string() + " does not contain an admin_user_id and password"};
  AdminAccount account{found->user_id, Secret(found->password), false};
  return account;
}

}  // namespace

Result<AdminAccount> open_admin_account(const std::filesystem::path& file, Secret given) {
  if (!given.empty()) return AdminAccount{first_admin_user_id, std::move(given), false};
  auto text =
      read_private_file(file.string(), "the administrator's password", file_bytes_max, LinkRule::refused);
  if (text) return account_of(std::move(*text), file);
  if (text.error().system_error != ENOENT) return text.error();
  return make_account(file);
}

}  // namespace lightq::broker
