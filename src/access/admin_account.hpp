/// Opens the administrator's account: a fixed name, and a password that the first start generates. Layer:
/// access.
#pragma once

#include <filesystem>
#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>

namespace lightq::broker {

inline constexpr const char* first_admin_user_id = "lightq_admin";

struct AdminAccount {
  std::string user_id;
  Secret password;
  bool is_new = false;  ///< true if this call has created the file
};

/// Returns the account in `file` (DATA_DIR/admin.json: {"admin_user_id":…,"admin_password":…}, mode 0600).
/// Creates the file with a random password of 256 bits if it does not exist. If `given` is not empty, it is
/// the password, and the file is neither read nor created. Errors: io_error, no_space; invalid_argument if
/// users other than its owner may read the file; corrupt if the file does not contain an account.
Result<AdminAccount> open_admin_account(const std::filesystem::path& file, Secret given);

}  // namespace lightq::broker
