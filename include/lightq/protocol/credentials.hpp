/// The credentials in control requests. Layer: protocol.
#pragma once

#include <string>

#include <lightq/base/secret.hpp>

namespace lightq::inline v1::protocol {

/// The name and password of a user. Never logged, never echoed.
struct Credentials {
  std::string user_id;
  Secret password;
};

}  // namespace lightq::inline v1::protocol
