/// Chooses the text that an error shows for a file name that may be a secret. Layer: base.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

/// Returns true if `name` may be a secret that a user gave in place of the name of its file. Such a name
/// contains neither a slash nor a dot, or is a key's 64 hexadecimal digits. Thread: any.
inline bool may_be_secret(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdefABCDEF";
  constexpr std::size_t key_digits = 64;
  const bool is_key = name.size() == key_digits && name.find_first_not_of(digits) == std::string_view::npos;
  return is_key || name.find_first_of("/.") == std::string_view::npos;
}

/// Returns the text with which an error names a missing file: `name`, or a phrase if `name` may be a secret.
/// Thread: any.
inline std::string shown_path(std::string_view name) {
  if (!may_be_secret(name)) return std::string(name);
  return "the given file (its name is not shown, because it may be the secret itself)";
}

}  // namespace lightq::inline v1
