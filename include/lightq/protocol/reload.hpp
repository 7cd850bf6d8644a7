/// The reply to the request `reload`. Layer: protocol.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lightq::inline v1::protocol {

/// The names of the settings that the broker found changed. `tls_certificate` also stands for another
/// certificate in the same file, and `allowed_client_keys` for other keys.
struct ReloadReply {
  std::vector<std::string> changed;        ///< these are in force now
  std::vector<std::string> needs_restart;  ///< these have their old values until the broker starts again
  static constexpr std::size_t names_max = 1024;
  static constexpr std::size_t name_bytes_max = 256;
};

}  // namespace lightq::inline v1::protocol
