/// Reads settings from the TOML file, the environment and overrides. Layer: broker.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
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
#include "broker/settings/settings_reading.hpp"
#include "broker/settings/template_tables.hpp"
#include "broker/settings/toml_file.hpp"

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

/// Returns the value as text, if it has the setting's type.
std::optional<std::string> text_of(const TomlValue& value, SettingType type) {
  using Kind = TomlValue::Kind;
  const bool may_be_text = type == SettingType::text || type == SettingType::bytes;
  const bool may_be_number = type == SettingType::number || type == SettingType::bytes;
  const bool fits = (value.kind == Kind::text && may_be_text) ||
                    (value.kind == Kind::number && may_be_number) ||
                    (value.kind == Kind::boolean && type == SettingType::boolean);
  return fits ? std::optional(value.text) : std::nullopt;
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

/// Sets a value and notes its source, or notes the fault.
void take(SettingsReading& reading, const Setting& setting, const std::string& text, const std::string& what,
          const std::string& source) {
  if (auto applied = apply(reading.config, setting, text, what); !applied)
    reading.faults.push_back(applied.error());
  else
    reading.sources[setting.name] = source;
}

void take_environment(SettingsReading& reading, const Environment& environment) {
  for (const auto& setting : settings()) {
    const auto name = environment_name(setting);
    const auto value = environment(name);
    if (value && !value->empty()) take(reading, setting, *value, name, name);
  }
}

void take_overrides(SettingsReading& reading, const std::map<std::string, std::string>& overrides) {
  for (const auto& [name, value] : overrides) {
    auto flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto* setting = find_setting(name);
    if (setting != nullptr)
      take(reading, *setting, value, flag, flag);
    else
      reading.faults.emplace_back(ErrorCode::invalid_argument, flag + ": there is no such setting");
  }
}

/// Reads one key of the top level of a file.
void take_key(SettingsReading& reading, const TomlValue& key, const std::string& file) {
  if (key.name == "topics") return read_templates(reading, key, file);
  const auto* setting = find_setting(key.name);
  if (setting == nullptr || key.name != setting->name) {
    reading.faults.emplace_back(
        ErrorCode::invalid_argument,
        text_of_place(file, key.key) + key.name + ": there is no such setting" + suggestion_for(key.name));
    return;
  }
  const auto value = text_of(key, setting->type);
  const auto what = text_of_place(file, key.value) + key.name;
  if (value)
    take(reading, *setting, *value, what, file + ":" + std::to_string(key.value.line));
  else
    reading.faults.emplace_back(ErrorCode::invalid_argument, what + ": must be " + type_word(setting->type));
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

Environment start_environment() {
  const auto password = std::make_shared<std::optional<Secret>>(take_secret_variable(password_variable));
  return [password](const std::string& name) {
    if (name != password_variable) return process_environment(name);
    std::optional<std::string> taken;
    if (*password) taken = (*password)->expose();
    password->reset();
    return taken;
  };
}

Result<std::filesystem::path> default_data_dir(bool is_root, const Environment& environment) {
  if (is_root) return std::filesystem::path("/var/lib/lightq");
  const auto state = environment("XDG_STATE_HOME").value_or("");
  if (state.starts_with('/')) return std::filesystem::path(state) / "lightq";
  const auto home = environment("HOME").value_or("");
  if (home.starts_with('/')) return std::filesystem::path(home) / ".local/state/lightq";
  return Error{ErrorCode::invalid_argument, "data_dir: not set, and there is no home directory either"};
}

Result<void> read_admin_password(Config& config, const Environment& environment, const PipeWait& wait) {
  constexpr std::string_view setting = "admin_password_file";
  // The file takes precedence, because naming it is more deliberate.
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

void read_toml(SettingsReading& reading, std::string_view text, const std::string& name) {
  const auto keys = parse_toml(text, name);
  if (!keys) return reading.faults.push_back(keys.error());
  for (const TomlValue& key : *keys) take_key(reading, key, name);
}

Result<void> apply_toml(Config& config, std::string_view text, const std::string& name) {
  SettingsReading reading{config, {}, {}};
  read_toml(reading, text, name);
  config = std::move(reading.config);
  if (!reading.faults.empty()) return reading.faults.front();
  return {};
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
  auto reading = read_settings(file, environment, overrides, wait);
  if (!reading.faults.empty()) return reading.faults.front();
  return std::move(reading.config);
}

SettingsReading read_settings(const std::optional<std::filesystem::path>& file,
                              const Environment& environment,
                              const std::map<std::string, std::string>& overrides, const PipeWait& wait) {
  SettingsReading reading;
  std::filesystem::path path = file.value_or("");
  if (path.empty()) path = environment("LIGHTQ_CONFIG").value_or("");
  if (!path.empty()) {
    const auto text = read_public_file(path.string(), "settings", config_bytes_max, LinkRule::followed, wait);
    if (text)
      read_toml(reading, text.value(), path.string());
    else
      reading.faults.push_back(text.error());
  }
  take_environment(reading, environment);
  take_overrides(reading, overrides);
  check_templates(reading);
  if (!reading.faults.empty()) return reading;
  if (auto checked = check_hosts(reading.config); !checked) reading.faults.push_back(checked.error());
  if (!reading.config.data_dir.empty()) return reading;
  auto chosen = default_data_dir(geteuid() == 0, environment);
  if (chosen)
    reading.config.data_dir = std::move(chosen).value();
  else
    reading.faults.push_back(chosen.error());
  return reading;
}

}  // namespace lightq::broker
