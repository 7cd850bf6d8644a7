/// Finds environment variables that no command knows. Layer: cli.
#include "client/text/variables.hpp"

#include <string_view>
#include <vector>

#include <lightq/base/nearest_word.hpp>

namespace lightq::cli {
namespace {

constexpr std::string_view variable_prefix = "LIGHTQ_";

/// Returns true for `LIGHTQ_SERVICE_HOST`, `LIGHTQ_PORT_5000_TCP_ADDR` and similar variables. Containers get
/// them for a service with the name `lightq`.
bool is_of_a_service(std::string_view name, std::string_view value) {
  if (name == "SERVICE_HOST" || name.starts_with("SERVICE_PORT")) return true;
  if (name == "NAME") return value.starts_with('/');
  if (name == "PORT") return value.find("://") != std::string_view::npos;
  constexpr std::string_view port = "PORT_";
  if (!name.starts_with(port)) return false;
  const std::size_t end = name.find_first_not_of("0123456789", port.size());
  return end != std::string_view::npos && end > port.size() && name[end] == '_';
}

}  // namespace

std::optional<std::string> unknown_variable(const std::set<std::string>& known,
                                            const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with(variable_prefix) || equals == std::string_view::npos || equals + 1 == entry.size())
      continue;
    const std::string name(entry.substr(0, equals));
    const std::string_view bare = std::string_view(name).substr(variable_prefix.size());
    if (known.contains(name) || is_of_a_service(bare, entry.substr(equals + 1))) continue;
    std::vector<std::string_view> bare_known;
    for (const std::string& each : known)
      if (each.starts_with(variable_prefix))
        bare_known.push_back(std::string_view(each).substr(variable_prefix.size()));
    const auto near = nearest_spelling(bare, bare_known);
    return "the environment sets " + name + ", but there is no such setting; " +
           (near ? "did you mean " + std::string(variable_prefix) + *near + "?"
                 : "unset it, or see --help for the settings");
  }
  return std::nullopt;
}

}  // namespace lightq::cli
