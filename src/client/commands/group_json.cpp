/// Groups and their settings as JSON. Layer: cli.
#include "client/commands/group_json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <lightq/protocol/stats_fields.hpp>

namespace lightq::cli {

void add_group_settings(JsonObject& to, const protocol::GroupSettings& settings) {
  JsonArray steps;
  for (const std::uint32_t ms : settings.backoff_ms) steps.add(std::to_string(ms));
  to.add("max_attempts", settings.max_attempts)
      .add_raw("backoff_ms", steps.text())
      .add("dead_letter_topic", settings.dead_letter_topic)
      .add("dead_waiting_max", settings.dead_waiting_max);
  if (settings.processing_timeout_ms) to.add("processing_timeout_ms", *settings.processing_timeout_ms);
  to.add("pause_when_failing", settings.pause_when_failing)
      .add("dead_letter_expired", settings.dead_letter_expired);
}

namespace {
std::string members_json(const std::vector<protocol::MemberStats>& consumers) {
  JsonArray list;
  for (const protocol::MemberStats& member : consumers) {
    JsonObject entry;
    protocol::visit_fields(member, [&](protocol::StatField field, const auto& value) {
      if constexpr (!std::is_same_v<decltype(value), const std::optional<std::uint32_t>&>)
        entry.add(field.name, value);
      else if (value)
        entry.add(field.name, *value);
    });
    list.add(entry.text());
  }
  return list.text();
}
}  // namespace

std::string group_json(const protocol::GroupStats& group) {
  JsonObject to;
  protocol::visit_fields(group, [&](protocol::StatField field, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const protocol::GroupSettings&>) {
      JsonObject settings;
      add_group_settings(settings, value);
      to.add_raw(field.name, settings.text());
    } else if constexpr (std::is_same_v<decltype(value),
                                        const std::optional<std::vector<protocol::MemberStats>>&>) {
      if (value) to.add_raw(field.name, members_json(*value));
    } else {
      to.add(field.name, value);
    }
  });
  return to.text();
}

}  // namespace lightq::cli
