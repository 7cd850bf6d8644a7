/// Reads the topic templates of a configuration file. Layer: broker.
#pragma once

#include <string>

#include "broker/settings/settings_reading.hpp"
#include "broker/settings/toml_file.hpp"

namespace lightq::broker {

/// Returns the name under which SettingsReading::sources has a setting of a template.
inline std::string template_source(const std::string& pattern, std::string_view name) {
  return "topics." + pattern + "." + std::string(name);
}

/// Reads the tables `[topics."PATTERN"]` into the configuration, with their sources. Notes the faults, each
/// with its place. `topics` is the key of the top level.
void read_templates(SettingsReading& reading, const TomlValue& topics, const std::string& file);

/// Notes templates that no topic could be created with, because of the broker's other settings.
void check_templates(SettingsReading& reading);

}  // namespace lightq::broker
