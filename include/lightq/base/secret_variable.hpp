/// Takes a secret out of the process's environment. Layer: base.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lightq::inline v1 {

/// The variable's value, which the environment has no more: the bytes of every entry with this name, as
/// /proc/PID/environ shows them to everybody with this account, are overwritten (who started the process may
/// have given several), and children are not given it. Nothing: it was not set. The caller wipes the text.
/// Not thread-safe, as the environment is not: to be called before there is another thread.
inline std::optional<std::string> take_secret_variable(const std::string& name) {
  const char* const value = ::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  std::string taken = value;
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
