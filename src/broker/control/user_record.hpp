/// A user: who may do what with which topics. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "broker/control/authenticator.hpp"
#include "broker/endpoint/user_access.hpp"

namespace lightq::broker {

/// As the catalogue keeps it. Ids of users and of credentials are drawn from one sequence, so that a number
/// in a ticket is either a user's or that of a topic's own user.
struct UserRecord : UserAccess {
  CredentialRecord credential;       ///< a new id with each new password; without a hash no password is right
  std::optional<std::uint32_t> uid;  ///< of the operating system

  [[nodiscard]] const std::string& name() const { return credential.user_id; }
};

}  // namespace lightq::broker
