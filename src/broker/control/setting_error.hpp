/// Errors of what a setting names. Layer: control.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/error.hpp>

namespace lightq::broker {

/// The error, which names the file, with the setting that names the file in front.
inline Error error_of_setting(std::string_view setting, Error error) {
  error.message = std::string(setting) + ": " + error.message;
  return error;
}

}  // namespace lightq::broker
