/// Errors about the file that a setting names. Layer: base.
#pragma once

#include <string>
#include <string_view>

#include <lightq/base/error.hpp>

namespace lightq::broker {

/// Returns `error` with the setting's name in front of its message, which already names the file.
inline Error error_of_setting(std::string_view setting, Error error) {
  error.message = std::string(setting) + ": " + error.message;
  return error;
}

}  // namespace lightq::broker
