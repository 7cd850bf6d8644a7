/// A topic's settings as JSON members, in requests and in the catalogue. docs/protocol.md, "create_topic".
/// Layer: protocol.
#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::inline v1::protocol::detail {

/// Fails for a setting that does not apply to the topic's broker_type; such a setting is never ignored.
inline void check_applicable(FieldReader& fields, BrokerType type) {
  visit_topic_settings([&](const char* name, auto) {
    if (fields.has(name) && !has_setting(type, name))
      fields.fail(name, "only for broker_type " + std::string(types_with_setting(name)));
  });
}

/// Reads the settings that are given, and does not check whether they apply to the broker_type.
/// `default_type`: the type if none is given; nothing: a missing type is an error.
inline TopicSettings read_setting_values(FieldReader& fields, std::optional<BrokerType> default_type) {
  using namespace limits;
  TopicSettings settings;
  settings.broker_type =
      fields.word<BrokerType>("broker_type", "queue, file, direct, queue_file", default_type);
  settings.ring_bytes = fields.number("ring_bytes", ring_bytes_min, ring_bytes_max, ring_bytes_default);
  settings.overflow = fields.word<Overflow>("overflow", "block, reject, drop_oldest", Overflow::block);
  settings.capacity_bytes = fields.number("capacity_bytes", 0, number_max, 0);
  settings.retention_bytes = fields.number("retention_bytes", 0, number_max, 0);
  settings.retention_ms = fields.number("retention_ms", 0, number_max, 0);
  settings.retention_messages = fields.number("retention_messages", 0, number_max, 0);
  settings.retention_over_pending = fields.boolean("retention_over_pending", false);
  settings.segment_bytes =
      fields.number("segment_bytes", segment_bytes_min, segment_bytes_max, segment_bytes_default);
  settings.open = fields.boolean("open", false);
  settings.encrypt_at_rest = fields.boolean("encrypt_at_rest", false);
  settings.message_ttl_ms = fields.number("message_ttl_ms", 0, ttl_ms_max, 0);
  return settings;
}

/// Reads the settings of an existing topic.
inline TopicSettings read_settings(FieldReader& fields) {
  const TopicSettings settings = read_setting_values(fields, std::nullopt);
  if (!fields.error()) check_applicable(fields, settings.broker_type);
  return settings;
}

/// Returns the settings that are given.
inline GivenSettings read_given_settings(const FieldReader& fields) {
  GivenSettings given;
  visit_topic_settings([&](const char* name, auto) {
    if (fields.has(name)) given.add(name);
  });
  return given;
}

template <typename Value>
void write_setting(OrderedJson& to, const char* name, const Value& value) {
  if constexpr (std::is_enum_v<Value>)
    to[name] = to_word(value);
  else
    to[name] = value;
}

/// Writes the settings that are given.
inline void write_given_settings(OrderedJson& to, const TopicSettings& settings, GivenSettings given) {
  visit_topic_settings([&](const char* name, auto member) {
    if (given.has(name)) write_setting(to, name, settings.*member);
  });
}

/// Writes only the settings that differ from their defaults, so that settings that do not apply are not sent.
inline void write_settings(OrderedJson& to, const TopicSettings& settings) {
  const TopicSettings defaults;
  to["broker_type"] = to_word(settings.broker_type);
  if (settings.overflow != defaults.overflow) to["overflow"] = to_word(settings.overflow);
  const auto number = [&](const char* name, std::uint64_t value, std::uint64_t fallback) {
    if (value != fallback) to[name] = value;
  };
  number("ring_bytes", settings.ring_bytes, defaults.ring_bytes);
  number("capacity_bytes", settings.capacity_bytes, 0);
  number("retention_bytes", settings.retention_bytes, 0);
  number("retention_ms", settings.retention_ms, 0);
  number("retention_messages", settings.retention_messages, 0);
  if (settings.retention_over_pending) to["retention_over_pending"] = true;
  number("segment_bytes", settings.segment_bytes, defaults.segment_bytes);
  if (settings.open) to["open"] = true;
  if (settings.encrypt_at_rest) to["encrypt_at_rest"] = true;
  number("message_ttl_ms", settings.message_ttl_ms, 0);
}

/// Calls `visit` with the name, the largest value and the member of each numeric setting that may change.
template <typename Change, typename Visit>
void visit_changed_numbers(Change& change, Visit&& visit) {
  visit("message_ttl_ms", limits::ttl_ms_max, change.message_ttl_ms);
  visit("capacity_bytes", number_max, change.capacity_bytes);
  visit("retention_bytes", number_max, change.retention_bytes);
  visit("retention_ms", number_max, change.retention_ms);
  visit("retention_messages", number_max, change.retention_messages);
}

/// Reads the settings that are given. Fails for a setting that a topic keeps for its life.
inline TopicChange read_topic_change(FieldReader& fields) {
  TopicChange change;
  visit_changed_numbers(change, [&](const char* name, std::uint64_t most, std::optional<std::uint64_t>& to) {
    if (fields.has(name)) to = fields.number(name, 0, most, 0);
  });
  if (fields.has("overflow"))
    change.overflow = fields.word<Overflow>("overflow", "block, reject, drop_oldest", std::nullopt);
  if (fields.has("retention_over_pending"))
    change.retention_over_pending = fields.boolean("retention_over_pending", false);
  for (const char* name : {"broker_type", "ring_bytes", "segment_bytes", "open", "encrypt_at_rest"}) {
    if (fields.has(name)) fields.fail(name, "cannot change after the topic was created; create a new topic");
  }
  return change;
}

inline void write_topic_change(OrderedJson& to, const TopicChange& change) {
  visit_changed_numbers(change,
                        [&](const char* name, std::uint64_t, const std::optional<std::uint64_t>& value) {
                          if (value) to[name] = *value;
                        });
  if (change.overflow) to["overflow"] = to_word(*change.overflow);
  if (change.retention_over_pending) to["retention_over_pending"] = *change.retention_over_pending;
}

}  // namespace lightq::inline v1::protocol::detail
