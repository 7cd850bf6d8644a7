/// Reads settings from the TOML file, the environment and overrides. The only file that uses toml++. Layer:
/// broker.
#include <stdlib.h>
#include <unistd.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/nearest_word.hpp>
#include <lightq/base/private_file.hpp>
#include <lightq/base/secret_variable.hpp>
#include <lightq/base/shown_uri.hpp>

#include "base/ascii_case.hpp"
#include "base/setting_error.hpp"
#include "broker/config.hpp"

namespace lightq::broker {

namespace {

constexpr const char* password_variable = "LIGHTQ_ADMIN_PASSWORD";
constexpr std::size_t config_bytes_max = 1 * limits::MiB;

const Setting* find_setting(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  for (const auto& setting : settings()) {
    if (name == setting.name) return &setting;
  }
  return nullptr;
}

/// Returns a suggestion for a misspelled setting, as the end of a sentence.
std::string suggestion_for(std::string name) {
  name = in_lower_case(name);
  std::ranges::replace(name, '-', '_');
  std::vector<std::string_view> names;
  for (const auto& setting : settings()) names.emplace_back(setting.name);
  const auto near = nearest_spelling(name, names);
  return near ? "; did you mean " + *near + "?" : "";
}

/// Parses and sets a value. `what` names the setting as the user wrote it, and its origin.
Result<void> apply(Config& config, const Setting& setting, const std::string& text, const std::string& what) {
  auto set = setting.set(config, text);
  if (set) return set;
  return Error{set.error().code, what + ": " + set.error().message + ", not \"" + shown_uri(text) + "\""};
}

std::string place(const std::string& file, const toml::source_region& region) {
  return file + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column) + ": ";
}

/// Returns the value as text, if it has the setting's type.
std::optional<std::string> text_of(const toml::node& node, SettingType type) {
  if (type == SettingType::boolean) {
    if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
    return std::nullopt;
  }
  if (type != SettingType::number) {
    if (const auto* text = node.as_string()) return text->get();
  }
  if (type != SettingType::text) {
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
  }
  return std::nullopt;
}

const char* type_word(SettingType type) {
  switch (type) {
    case SettingType::text: return "a text";
    case SettingType::number: return "a whole number";
    case SettingType::bytes: return "a whole number or a text such as \"16MiB\"";
    case SettingType::boolean: return "true or false";
  }
  return "";
}

Result<void> apply_environment(Config& config, const Environment& environment) {
  for (const auto& setting : settings()) {
    const auto name = environment_name(setting);
    const auto value = environment(name);
    if (!value || value->empty()) continue;
    if (auto applied = apply(config, setting, *value, name); !applied) return applied;
  }
  return {};
}

Result<void> apply_overrides(Config& config, const std::map<std::string, std::string>& overrides) {
  for (const auto& [name, value] : overrides) {
    auto flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto* setting = find_setting(name);
    if (setting == nullptr) return Error{ErrorCode::invalid_argument, flag + ": there is no such setting"};
    if (auto applied = apply(config, *setting, value, flag); !applied) return applied;
  }
  return {};
}

/// Reads the password from the file or the environment. The file takes precedence, because naming it is more
/// deliberate.
Result<void> read_admin_password(Config& config, const Environment& environment, const PipeWait& wait) {
  constexpr std::string_view setting = "admin_password_file";
  Secret from_environment = environment(password_variable).value_or("");
  if (config.admin_password_file.empty()) {
    config.admin_password = std::move(from_environment);
  } else {
    auto line = read_private_line(config.admin_password_file.string(), "the administrator's password",
                                  limits::password_bytes_max, wait);
    if (!line) return error_of_setting(setting, line.error());
    config.admin_password = std::move(*line);
    if (config.admin_password.empty()) {
      return error_of_setting(setting, {ErrorCode::invalid_argument,
                                        config.admin_password_file.string() + ": contains no password"});
    }
  }
  if (config.admin_password.size() > limits::password_bytes_max) {
    return Error{ErrorCode::invalid_argument, "the administrator's password has more than " +
                                                  std::to_string(limits::password_bytes_max) + " bytes"};
  }
  return {};
}

}  // namespace

std::string environment_name(const Setting& setting) {
  std::string name = "LIGHTQ_";
  for (const char* c = setting.name; *c != '\0'; ++c) {
    name += *c >= 'a' && *c <= 'z' ? static_cast<char>(*c - 'a' + 'A') : *c;
  }
  return name;
}

std::optional<std::string> process_environment(const std::string& name) {
  if (name == password_variable) {
    if (const auto taken = take_secret_variable(name)) return taken->expose();
    return std::nullopt;
  }
  const char* const value = getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<std::filesystem::path> default_data_dir(bool is_root, const Environment& environment) {
  if (is_root) return std::filesystem::path("/var/lib/lightq");
  const auto state = environment("XDG_STATE_HOME").value_or("");
  if (state.starts_with('/')) return std::filesystem::path(state) / "lightq";
  const auto home = environment("HOME").value_or("");
  if (home.starts_with('/')) return std::filesystem::path(home) / ".local/state/lightq";
  return Error{ErrorCode::invalid_argument, "data_dir: not set, and there is no home directory either"};
}

Result<void> apply_toml(Config& config, std::string_view text, const std::string& name) {
  try {
    const toml::table document = toml::parse(text);
    for (const auto& [key, node] : document) {
      const std::string key_name(key.str());
      const auto* setting = find_setting(key_name);
      if (setting == nullptr || key_name != setting->name) {
        return Error{
            ErrorCode::invalid_argument,
            place(name, key.source()) + key_name + ": there is no such setting" + suggestion_for(key_name)};
      }
      const auto value = text_of(node, setting->type);
      const auto what = place(name, node.source()) + key_name;
      if (!value) {
        return Error{ErrorCode::invalid_argument, what + ": must be " + type_word(setting->type)};
      }
      if (auto applied = apply(config, *setting, *value, what); !applied) return applied;
    }
    return {};
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::invalid_argument, place(name, error.source()) + std::string(error.description())};
  }
}

Result<Config> load_config(const std::optional<std::filesystem::path>& file, const Environment& environment,
                           const std::map<std::string, std::string>& overrides, const PipeWait& wait) {
  auto config = load_settings(file, environment, overrides, wait);
  if (!config) return config.error();
  if (auto read = read_admin_password(*config, environment, wait); !read) return read.error();
  return config;
}

Result<Config> load_settings(const std::optional<std::filesystem::path>& file, const Environment& environment,
                             const std::map<std::string, std::string>& overrides, const PipeWait& wait) {
  Config config;
  std::filesystem::path path = file.value_or("");
  if (path.empty()) path = environment("LIGHTQ_CONFIG").value_or("");
  if (!path.empty()) {
    const auto text = read_public_file(path.string(), "settings", config_bytes_max, LinkRule::followed, wait);
    if (!text) return text.error();
    if (auto applied = apply_toml(config, text.value(), path.string()); !applied) return applied.error();
  }
  if (auto applied = apply_environment(config, environment); !applied) return applied.error();
  if (auto applied = apply_overrides(config, overrides); !applied) return applied.error();
  if (auto checked = check_hosts(config); !checked) return checked.error();
  if (config.data_dir.empty()) {
    auto chosen = default_data_dir(geteuid() == 0, environment);
    if (!chosen) return chosen.error();
    config.data_dir = std::move(chosen).value();
  }
  return config;
}

}  // namespace lightq::broker
