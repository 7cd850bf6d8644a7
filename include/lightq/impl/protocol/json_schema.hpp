/// Describes the control protocol's requests and replies as JSON Schemas, of the code that reads and writes
/// them. Layer: protocol.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lightq/base/secret.hpp>
#include <lightq/impl/protocol/json_reply.hpp>
#include <lightq/impl/protocol/json_reply_fields.hpp>
#include <lightq/impl/protocol/json_request.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/json_functions.hpp>
#include <lightq/protocol/json_schema.hpp>
#include <lightq/protocol/stats_fields.hpp>

namespace lightq::inline v1::protocol {

namespace detail {

// The name of the schema of each struct that is a part of replies.
inline const char* schema_name(const TopicStats&) {
  return "TopicStats";
}
inline const char* schema_name(const GroupStats&) {
  return "GroupStats";
}
inline const char* schema_name(const MemberStats&) {
  return "MemberStats";
}
inline const char* schema_name(const SubscriberStats&) {
  return "SubscriberStats";
}
inline const char* schema_name(const DelayedStats&) {
  return "DelayedStats";
}
inline const char* schema_name(const TopicSettings&) {
  return "TopicSettings";
}
inline const char* schema_name(const GroupSettings&) {
  return "GroupSettings";
}
inline const char* schema_name(const TopicListing&) {
  return "TopicListing";
}
inline const char* schema_name(const GroupListing&) {
  return "GroupListing";
}
inline const char* schema_name(const GroupTrace&) {
  return "GroupTrace";
}
inline const char* schema_name(const TracedHeader&) {
  return "TracedHeader";
}
inline const char* schema_name(const UserListing&) {
  return "UserListing";
}
inline const char* schema_name(const TopicRight&) {
  return "TopicRight";
}
inline const char* schema_name(const Ticket&) {
  return "Ticket";
}
inline const char* schema_name(const Tls&) {
  return "Tls";
}
inline const char* schema_name(const DeadMessage&) {
  return "DeadMessage";
}
inline const char* schema_name(const DelayedMessage&) {
  return "DelayedMessage";
}
inline const char* schema_name(const UntouchedDelayed&) {
  return "UntouchedDelayed";
}
inline const char* schema_name(const ScheduleListing&) {
  return "Schedule";
}
inline const char* schema_name(const ScheduleHeader&) {
  return "ScheduleHeader";
}

/// Returns the values with and without which a struct's table of fields is asked for the fields that are
/// always there: those that it writes for each of these values.
template <typename S>
std::vector<S> least_values() {
  if constexpr (std::is_same_v<S, GroupTrace>) {
    S done;
    done.state = MessageState::done;
    return {S(), done};
  } else if constexpr (!std::is_same_v<S, TopicSettings>) {
    return {S()};
  } else {
    std::vector<S> one_of_each;
    for (int i = 0; i < word_count<BrokerType>; ++i)
      one_of_each.push_back({.broker_type = static_cast<BrokerType>(i)});
    return one_of_each;
  }
}

/// A visitor of a table of fields that collects the schema of each field.
class SchemaWriter {
 public:
  SchemaWriter(OrderedJson& properties, OrderedJson& definitions)
      : properties_(properties), definitions_(definitions) {}

  template <typename Value>
  void operator()(const char* name, const Value& value) const {
    properties_[name] = schema_of(value);
  }
  void free_text(const char* name, const std::string& value) const { (*this)(name, value); }
  template <typename Text>
  void payload(const Text& /*value*/) const {
    properties_["payload"] = properties_["payload_base64"] = {{"type", "string"}};
  }

  /// Returns the schema of a struct by its table. `most`: a value of which all fields are visited.
  template <typename S>
  static OrderedJson object_of(S& most, OrderedJson& definitions) {
    OrderedJson schema{{"type", "object"}};
    schema["properties"] = OrderedJson::object();
    visit_fields(most, SchemaWriter{schema["properties"], definitions});
    return schema;
  }
  /// Names those fields as required that are written for all of the values.
  template <typename S>
  static void require(const std::vector<S>& values, OrderedJson& schema) {
    std::map<std::string, std::size_t> times;
    for (const S& value : values) {
      OrderedJson written = OrderedJson::object();
      visit_fields(value, FieldWriter{written});
      for (const auto& [name, field] : written.items()) ++times[name];
    }
    OrderedJson required = schema.value("required", OrderedJson::array());
    for (const auto& [name, field] : schema["properties"].items()) {
      if (times[name] == values.size()) required.push_back(name);
    }
    if (!required.empty()) schema["required"] = std::move(required);
  }

 private:
  static OrderedJson type(const char* word) { return {{"type", word}}; }

  template <typename Value>
  OrderedJson schema_of(const Value& value) const {
    if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, Secret>) {
      return type("string");
    } else if constexpr (std::is_same_v<Value, bool>) {
      return type("boolean");
    } else if constexpr (std::is_integral_v<Value>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_same_v<Value, Timestamp>) {
      return type("integer");
    } else if constexpr (std::is_enum_v<Value>) {
      return words_of<Value>();
    } else if constexpr (std::is_same_v<Value, Rights>) {
      return {{"type", "array"}, {"items", words_of<Right>()}};
    } else if constexpr (std::is_same_v<Value, std::map<std::string, std::uint64_t>>) {
      return {{"type", "object"}, {"additionalProperties", {{"type", "integer"}, {"minimum", 0}}}};
    } else {
      return schema_of_parts(value);
    }
  }
  template <typename Item>
  OrderedJson schema_of_parts(const std::vector<Item>&) const {
    return {{"type", "array"}, {"items", schema_of(Item())}};
  }
  template <typename Item>
  OrderedJson schema_of_parts(const std::optional<Item>&) const {
    return schema_of(Item());
  }
  /// Returns a reference to the schema of a struct, which it makes if there is none.
  template <typename S>
  OrderedJson schema_of_parts(const S& value) const {
    const std::string name = schema_name(value);
    if (!definitions_.contains(name)) {
      S most;
      OrderedJson schema = object_of(most, definitions_);
      require(least_values<S>(), schema);
      if constexpr (std::is_same_v<S, TopicSettings>) add_settings(schema);
      definitions_[name] = std::move(schema);
    }
    return {{"$ref", "#/components/schemas/" + name}};
  }
  /// Adds the settings that only some kinds of topics have.
  void add_settings(OrderedJson& schema) const {
    for (TopicSettings& settings : least_values<TopicSettings>())
      visit_fields(settings, SchemaWriter{schema["properties"], definitions_});
  }
  template <typename Enum>
  static OrderedJson words_of() {
    OrderedJson words = OrderedJson::array();
    if constexpr (std::is_same_v<Enum, Right>) {
      for (const auto& [word, member] : right_words) words.push_back(word);
    } else {
      for (int i = 0; i < word_count<Enum>; ++i) words.push_back(to_word(static_cast<Enum>(i)));
    }
    return {{"type", "string"}, {"enum", std::move(words)}};
  }

  OrderedJson& properties_;
  OrderedJson& definitions_;
};

/// The least and the most that an OkReply to a command has.
struct OkBounds {
  OkReply least;
  OkReply most;
};
inline OkBounds ok_bounds_of(std::string_view cmd) {
  OkBounds bounds;
  if (cmd == "create_topic") bounds.least.created.emplace();
  if (cmd == "purge" || cmd == "retry_dead" || cmd == "purge_dead") bounds.least.messages = 0;
  if (cmd == "seek_group") bounds.least.moved.emplace();
  if (cmd.ends_with("_delayed")) {
    bounds.least.messages = 0;
    bounds.least.delayed.emplace();
  }
  OkReply& most = bounds.most = bounds.least;
  most.description = "text";
  if (cmd == "leave") most.messages_handed = 0;
  if (cmd.ends_with("_dead")) most.unreadable = 1;
  if (cmd == "retry_dead") most.returned.emplace();
  if (most.created) most.created->topic_template = "pattern";
  if (most.delayed) most.delayed->untouched.emplace_back();
  return bounds;
}

template <typename S>
OrderedJson schema_of_reply(OrderedJson& definitions) {
  S most;
  OrderedJson schema = SchemaWriter::object_of(most, definitions);
  SchemaWriter::require(least_values<S>(), schema);
  return schema;
}

inline OrderedJson schema_of_ok_reply(std::string_view cmd, OrderedJson& definitions) {
  const OkBounds bounds = ok_bounds_of(cmd);
  OrderedJson schema = SchemaWriter::object_of(bounds.most, definitions);
  SchemaWriter::require(std::vector<OkReply>{bounds.least}, schema);
  return schema;
}

inline OrderedJson fields_of_reply(std::string_view cmd, bool is_of_broker, OrderedJson& definitions) {
  if (cmd == "version") return schema_of_reply<VersionReply>(definitions);
  if (cmd == "join") return schema_of_reply<JoinReply>(definitions);
  if (cmd == "list_topics") return schema_of_reply<ListReply>(definitions);
  if (cmd == "list_users") return schema_of_reply<UserListReply>(definitions);
  if (cmd == "reload") return schema_of_reply<ReloadReply>(definitions);
  if (cmd == "stats_all") return schema_of_reply<StatsAllReply>(definitions);
  if (cmd == "list_dead") return schema_of_reply<DeadPage>(definitions);
  if (cmd == "trace") return schema_of_reply<MessageTrace>(definitions);
  if (cmd == "list_delayed") return schema_of_reply<DelayedPage>(definitions);
  if (cmd == "list_schedules") return schema_of_reply<SchedulePage>(definitions);
  if (cmd != "stats") return schema_of_ok_reply(cmd, definitions);
  return is_of_broker ? schema_of_reply<BrokerStats>(definitions) : schema_of_reply<TopicStats>(definitions);
}

LIGHTQ_INLINE ObjectSchema request_schema(std::string_view cmd) {
  ObjectSchema schema;
  const Json nothing = Json::object();
  FieldReader fields(nothing, schema);
  (void)read_request(cmd, fields);
  return schema;
}

LIGHTQ_INLINE OrderedJson reply_schema(std::string_view cmd, bool is_of_broker, OrderedJson& definitions) {
  const OrderedJson fields = fields_of_reply(cmd, is_of_broker, definitions);
  if (cmd == "stats") definitions[is_of_broker ? "BrokerStats" : "TopicStats"] = fields;
  OrderedJson schema{{"type", "object"}};
  schema["required"] = {"cmd", "status"};
  for (const auto& name : fields.value("required", OrderedJson::array())) schema["required"].push_back(name);
  schema["properties"]["cmd"] = {{"const", cmd}};
  schema["properties"]["status"] = {{"const", "ok"}};
  schema["properties"].update(fields["properties"]);
  return schema;
}

}  // namespace detail

}  // namespace lightq::inline v1::protocol
