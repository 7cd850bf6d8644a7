/// What is told of the name of a file in which a secret should be. Layer: base.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

/// Whether `name`, given where a file's name belongs, may be the secret itself: it has neither a slash nor a
/// dot, or is a key's 64 hexadecimal digits. Any thread.
inline bool may_be_secret(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdefABCDEF";
  constexpr std::size_t key_digits = 64;
  const bool is_key = name.size() == key_digits && name.find_first_not_of(digits) == std::string_view::npos;
  return is_key || name.find_first_of("/.") == std::string_view::npos;
}

/// The name of a file that is not there, for an error: itself, or words in its place. Any thread.
inline std::string shown_path(std::string_view name) {
  if (!may_be_secret(name)) return std::string(name);
  return "a file of the name that was given (it is not repeated, since it may be the secret itself)";
}

}  // namespace lightq::inline v1
