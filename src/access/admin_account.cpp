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
  AdminAccount account{first_admin_user_id, random_text(password_bytes), true};
  protocol::detail::OrderedJson document;
  document["admin_user_id"] = account.user_id;
  document["admin_password"] = account.password.expose();
  const Secret text = protocol::detail::dump(document) + '\n';
  const auto written = write_file_atomically(file, text.expose(), 0600);
  if (!written) return written.error();
  return account;
}

Result<AdminAccount> account_of(const Secret& text, const std::filesystem::path& file) {
  auto found = protocol::parse_admin_file(text.expose());
  if (!found)
    return Error{ErrorCode::corrupt, file.string() + " does not contain an admin_user_id and password"};
  return AdminAccount{std::move(found->user_id), std::move(found->password), false};
}

}  // namespace

Result<AdminAccount> open_admin_account(const std::filesystem::path& file, Secret given) {
  if (!given.empty()) return AdminAccount{first_admin_user_id, std::move(given), false};
  const auto text =
      read_private_file(file.string(), "the administrator's password", file_bytes_max, LinkRule::refused);
  if (text) return account_of(*text, file);
  if (text.error().system_error != ENOENT) return text.error();
  return make_account(file);
}

}  // namespace lightq::broker
