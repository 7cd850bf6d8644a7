/// Takes passwords out of the process's environment. Layer: cli.
#include "client/secret_environment.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <lightq/base/secret_variable.hpp>
#include <lightq/base/wipe.hpp>

namespace lightq::cli {

SecretEnvironment::~SecretEnvironment() {
  for (auto& [name, value] : found_) wipe_text(value);
}

void SecretEnvironment::collect(bool for_broker) {
  constexpr std::string_view of_broker = "LIGHTQ_ADMIN_PASSWORD";
  for (const std::string_view name :
       std::array<std::string_view, 3>{"LIGHTQ_PASSWORD", of_broker, "LIGHTQ_NEW_PASSWORD"}) {
    if (for_broker && name == of_broker) continue;
    auto value = take_secret_variable(std::string(name));
    if (!value) continue;
    if (!for_broker) found_[std::string(name)] = *value;  // a broker has no use for them
    wipe_text(*value);                                    // a moved short string leaves its bytes
  }
}

std::string SecretEnvironment::take(const std::string& name) {
  const auto found = found_.find(name);
  if (found == found_.end()) return {};
  std::string value = found->second;
  wipe_text(found->second);
  found_.erase(found);
  return value;
}

}  // namespace lightq::cli
