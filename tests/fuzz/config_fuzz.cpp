/// Fuzz target: the broker's configuration file. No text may crash it. Each fault has a sentence. The values
/// of settings that were accepted are accepted again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "broker/settings/settings_reading.hpp"
#include "broker/settings/template_tables.hpp"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lightq::broker;
  SettingsReading reading;
  read_toml(reading, {reinterpret_cast<const char*>(data), size}, "f.toml");
  check_templates(reading);
  for (const lightq::Error& fault : reading.faults) must(!fault.message.empty());
  const auto values = config_values(reading);
  Config again;
  for (std::size_t i = 0; i < settings().size(); ++i) {
    must(values[i].name == settings()[i].name);
    if (values[i].value) must(settings()[i].set(again, *values[i].value).ok());
  }
  const TopicTemplates templates(reading.config.topic_templates);
  for (const TopicTemplate& each : reading.config.topic_templates) {
    // A template that was accepted yields a topic for an empty request.
    must(settings_of_new_topic({}, {}, &each).ok());
    must(each.pattern.find('*') != std::string::npos ||
         templates.find(each.pattern)->pattern == each.pattern);
  }
  return 0;
}
