/// Reads the topic templates of a configuration file. Layer: broker.
#include "broker/settings/template_tables.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/nearest_word.hpp>
#include <lightq/protocol/json_settings.hpp>
#include <lightq/protocol/topic_pattern.hpp>

#include "broker/number_text.hpp"
#include "control/templates/least_capacity.hpp"

namespace lightq::broker {

namespace {

using protocol::detail::FieldReader;
using protocol::detail::Json;

void fault(SettingsReading& reading, const std::string& file, TomlPlace place, const std::string& what) {
  reading.faults.emplace_back(ErrorCode::invalid_argument, text_of_place(file, place) + what);
}

bool is_setting(std::string_view name) {
  bool found = false;
  protocol::visit_topic_settings([&](std::string_view setting, auto) { found = found || setting == name; });
  return found;
}

std::string suggestion_for_topic_setting(std::string_view name) {
  std::vector<std::string_view> names;
  protocol::visit_topic_settings([&](std::string_view setting, auto) { names.push_back(setting); });
  const auto near = nearest_spelling(name, names);
  return near ? "; did you mean " + *near + "?" : "";
}

/// Returns the value as create_topic takes it. A text may give a number of bytes with its unit.
Json json_of(const TomlValue& value) {
  using Kind = TomlValue::Kind;
  if (value.kind == Kind::boolean) return value.text == "true";
  if (value.kind == Kind::text) {
    const auto bytes = value.name.ends_with("_bytes") ? parse_bytes(value.text) : std::nullopt;
    return bytes ? Json(*bytes) : Json(value.text);
  }
  const auto number = value.kind == Kind::number ? parse_number(value.text) : std::nullopt;
  return number ? Json(*number) : Json();
}

/// Reads one setting of a template. Values and ranges are those of create_topic.
void read_template_setting(SettingsReading& reading, TopicTemplate& to, const TomlValue& setting,
                           const std::string& file) {
  if (!is_setting(setting.name)) {
    const bool is_table = setting.kind == TomlValue::Kind::table;
    return fault(reading, file, setting.key,
                 setting.name + ": topics have no such setting" +
                     (is_table ? "; a pattern with dots needs quotes, as in [topics.\"" + to.pattern + "." +
                                     setting.name + "\"]"
                               : suggestion_for_topic_setting(setting.name)));
  }
  const Json object = {{setting.name, json_of(setting)}};
  FieldReader fields(object);
  const protocol::TopicSettings read =
      protocol::detail::read_setting_values(fields, protocol::BrokerType::queue);
  if (fields.error()) return fault(reading, file, setting.value, fields.error()->message);
  to.given.add(setting.name);
  protocol::visit_topic_settings([&](std::string_view name, auto member) {
    if (name == setting.name) to.settings.*member = read.*member;
  });
  reading.sources[template_source(to.pattern, setting.name)] =
      file + ":" + std::to_string(setting.value.line);
}

void read_template(SettingsReading& reading, const TomlValue& one, const std::string& file) {
  if (!protocol::is_topic_pattern(one.name))
    return fault(reading, file, one.key,
                 "topics: the pattern must have 1 to " + std::to_string(limits::topic_pattern_bytes_max) +
                     " of A-Z a-z 0-9 . _ - *, and not begin with . or -");
  if (one.kind != TomlValue::Kind::table)
    return fault(reading, file, one.value,
                 one.name + ": must be a table of settings, as in [topics.\"" + one.name + "\"]");
  TopicTemplate read{one.name, {}, {}};
  for (const TomlValue& setting : one.members) read_template_setting(reading, read, setting, file);
  const protocol::BrokerType type = read.settings.broker_type;
  for (const TomlValue& setting : one.members) {
    if (!read.given.has("broker_type") || !read.given.has(setting.name) || has_setting(type, setting.name))
      continue;
    fault(reading, file, setting.key,
          setting.name + ": only for broker_type " + std::string(protocol::types_with_setting(setting.name)));
  }
  reading.config.topic_templates.push_back(std::move(read));
}

}  // namespace

void read_templates(SettingsReading& reading, const TomlValue& topics, const std::string& file) {
  if (topics.kind != TomlValue::Kind::table)
    return fault(reading, file, topics.value,
                 "topics: must have tables of topic templates, as in [topics.\"orders.*\"]");
  if (topics.members.size() > topic_templates_max)
    return fault(reading, file, topics.key,
                 "topics: at most " + std::to_string(topic_templates_max) + " templates, not " +
                     std::to_string(topics.members.size()));
  for (const TomlValue& one : topics.members) read_template(reading, one, file);
}

void check_templates(SettingsReading& reading) {
  for (const TopicTemplate& each : reading.config.topic_templates) {
    if (const auto refused = objection_to_capacity(each.settings.capacity_bytes);
        refused && each.given.has("capacity_bytes"))
      reading.faults.emplace_back(
          ErrorCode::invalid_argument,
          reading.source_of(template_source(each.pattern, "capacity_bytes")) + ": " + refused->message);
    if (!each.given.has("ring_bytes") || each.settings.ring_bytes <= reading.config.ring_bytes_max) continue;
    reading.faults.emplace_back(ErrorCode::invalid_argument,
                                reading.source_of(template_source(each.pattern, "ring_bytes")) +
                                    ": ring_bytes: exceeds ring_bytes_max (" +
                                    std::to_string(reading.config.ring_bytes_max) + ")");
  }
}

}  // namespace lightq::broker
