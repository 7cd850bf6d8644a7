/// Layer: cli.
#include "client/secret_environment.hpp"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <lightq/base/wipe.hpp>

namespace lightq::cli {

namespace {

constexpr const char* admin_password = "LIGHTQ_ADMIN_PASSWORD";
constexpr std::array names = {"LIGHTQ_PASSWORD", admin_password, "LIGHTQ_NEW_PASSWORD"};

/// Of every entry with that name: whoever started the process may have given several.
void overwrite(std::string_view name) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != '=') continue;
    explicit_bzero(*entry + name.size() + 1, text.size() - name.size() - 1);
  }
}

}  // namespace

SecretEnvironment::~SecretEnvironment() {
  for (auto& [name, value] : found_) wipe_text(value);
}

void SecretEnvironment::collect(bool for_broker) {
  for (const char* const name : names) {
    const char* const value = getenv(name);
    if (value == nullptr || (for_broker && name == admin_password)) continue;
    found_[name] = value;
    overwrite(name);
    unsetenv(name);
  }
}

std::string SecretEnvironment::take(const std::string& name) {
  const auto found = found_.find(name);
  if (found == found_.end()) return {};
  std::string value = found->second;
  wipe_text(found->second);  // moved, a short text would stay
  found_.erase(found);
  return value;
}

}  // namespace lightq::cli
