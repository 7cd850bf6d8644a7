/// Takes passwords out of the process's environment. Layer: cli.
#include "client/secret_environment.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <lightq/base/secret_variable.hpp>

namespace lightq::cli {

void SecretEnvironment::collect(bool for_broker) {
  constexpr std::string_view of_broker = "LIGHTQ_ADMIN_PASSWORD";
  for (const std::string_view name :
       std::array<std::string_view, 3>{"LIGHTQ_PASSWORD", of_broker, "LIGHTQ_NEW_PASSWORD"}) {
    if (for_broker && name == of_broker) continue;
    auto value = take_secret_variable(std::string(name));
    if (value && !for_broker) found_[std::string(name)] = std::move(*value);  // a broker has no use for them
  }
}

Secret SecretEnvironment::take(const std::string& name) {
  const auto found = found_.extract(name);
  return found.empty() ? Secret() : std::move(found.mapped());
}

}  // namespace lightq::cli
