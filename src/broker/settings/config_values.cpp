/// Lists the settings in force with their sources. Layer: broker.
#include <string_view>
#include <type_traits>
#include <utility>

#include "broker/reload_table.hpp"
#include "broker/settings/settings_reading.hpp"
#include "broker/settings/template_tables.hpp"
#include "broker/value_text.hpp"

namespace lightq::broker {

std::vector<ConfigValue> config_values(const SettingsReading& reading) {
  // A command that fetches keys may have a password among its words.
  constexpr std::string_view secret = "storage_key_command";
  std::vector<ConfigValue> all;
  for (std::size_t i = 0; i < settings().size(); ++i) {
    const Setting& setting = settings()[i];
    ConfigValue one{.table = {},
                    .name = setting.name,
                    .value = reload_rows()[i].text(reading.config),
                    .is_text = setting.type == SettingType::text,
                    .source = reading.source_of(setting.name)};
    one.is_secret = one.value && setting.name == secret;
    if (one.is_secret) one.value.reset();
    all.push_back(std::move(one));
  }
  for (const TopicTemplate& each : reading.config.topic_templates) {
    protocol::visit_topic_settings([&](const char* name, auto member) {
      if (!each.given.has(name)) return;
      const auto& value = each.settings.*member;
      ConfigValue one{.table = each.pattern,
                      .name = name,
                      .is_text = std::is_enum_v<std::remove_cvref_t<decltype(value)>>,
                      .source = reading.source_of(template_source(each.pattern, name))};
      if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>)
        one.value = to_word(value);
      else
        one.value = value_text(value);
      all.push_back(std::move(one));
    });
  }
  return all;
}

}  // namespace lightq::broker
