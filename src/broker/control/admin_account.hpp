/// The administrator: a fixed name, and a password that the first start invents. Layer: control.
#pragma once

#include <filesystem>
#include <string>

#include <lightq/base/result.hpp>

#include "broker/control/secret.hpp"

namespace lightq::broker {

inline constexpr const char* first_admin_user_id = "lightq_admin";

struct AdminAccount {
  std::string user_id;
  Secret password;
  bool is_new = false;  ///< the file was made just now
};

/// The account in `file` (DATA_DIR/admin.json: {"admin_user_id":…,"admin_password":…}, mode 0600), made with
/// a random password of 256 bits where there is no file. With `given` not empty, that is the password and the
/// file is neither read nor made. Errors: io_error, no_space; invalid_argument if others than its owner may
/// read the file; corrupt if it does not hold an account.
Result<AdminAccount> open_admin_account(const std::filesystem::path& file, Secret given);

}  // namespace lightq::broker
