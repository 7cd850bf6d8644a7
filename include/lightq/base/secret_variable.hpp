/// Removes a secret from the process's environment. Layer: base.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/secret.hpp>

namespace lightq::inline v1 {

/// Returns an environment variable's value, and removes the variable. Overwrites the bytes of every entry
/// with this name, because /proc/PID/environ shows them to every process of this account. (The environment
/// may contain the same name several times.) Children do not inherit the variable. Returns nothing if the
/// variable was not set. Thread: the environment is not thread-safe, so call this before there is another
/// thread.
inline std::optional<Secret> take_secret_variable(const std::string& name) {
  const char* const value = ::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  std::optional<Secret> taken = value;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t begin = name.size() + 1;
    if (text.size() < begin || !text.starts_with(name) || text[name.size()] != '=') continue;
    explicit_bzero(*entry + begin, text.size() - begin);
  }
  ::unsetenv(name.c_str());
  return taken;
}

}  // namespace lightq::inline v1
