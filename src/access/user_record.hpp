/// A user, with its password and rights. Layer: access.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "access/authenticator.hpp"
#include "access/user_access.hpp"

namespace lightq::broker {

/// A user as the catalogue stores it. Ids of users and of credentials come from one sequence. Thus a number
/// in a ticket identifies either a user or the own user of a topic.
struct UserRecord : UserAccess {
  /// Gets a new id with each new password. Without a hash, no password is correct.
  CredentialRecord credential;
  /// The user id in the operating system.
  std::optional<std::uint32_t> uid;

  [[nodiscard]] const std::string& name() const { return credential.user_id; }
};

}  // namespace lightq::broker
