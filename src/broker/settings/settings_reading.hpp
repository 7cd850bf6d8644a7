/// The settings with their sources and faults. Layer: broker.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "base/config_report.hpp"
#include "broker/config.hpp"

namespace lightq::broker {

/// The settings of all sources, and all faults that were found.
struct SettingsReading {
  Config config;
  /// The source of each setting that is not its default: `FILE:LINE`, the variable or the flag.
  std::map<std::string, std::string> sources;
  std::vector<Error> faults;  ///< not empty: some settings could not be read, and `config` lacks them

  /// Returns the source of a setting; `default` if it is not given.
  [[nodiscard]] std::string source_of(const std::string& setting) const {
    const auto found = sources.find(setting);
    return found == sources.end() ? "default" : found->second;
  }
};

/// Reads the settings as load_settings does, but continues after a fault of a value.
SettingsReading read_settings(const std::optional<std::filesystem::path>& file,
                              const Environment& environment,
                              const std::map<std::string, std::string>& overrides, const PipeWait& wait = {});

/// Reads the settings of a TOML text. `name` is the file's name in sources and errors.
void read_toml(SettingsReading& reading, std::string_view text, const std::string& name);

/// Reads the administrator's password from the file that `config` names, or from the environment. Errors:
/// those of read_private_line; invalid_argument (no password, or a password that is too long).
Result<void> read_admin_password(Config& config, const Environment& environment, const PipeWait& wait);

/// Returns all settings in the order of the help, then those of the topic templates. The value of a setting
/// that may contain a secret is left out.
std::vector<ConfigValue> config_values(const SettingsReading& reading);

}  // namespace lightq::broker
