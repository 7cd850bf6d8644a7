/// JSON Schemas of requests and replies, made of the code that reads and writes them. Layer: protocol.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/separate.hpp>

namespace lightq::inline v1::protocol::detail {

/// The pattern of names of topics and groups.
inline constexpr const char* name_pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$";

/// Collects the members for which a FieldReader asks. A member is required if no call asked whether it is
/// there. JSON Schema counts characters, LightQ bytes: so a text may be refused although it fits.
class ObjectSchema {
 public:
  using Schema = nlohmann::ordered_json;

  static Schema text(std::size_t bytes_min, std::size_t bytes_max) {
    Schema schema = free_text(bytes_max);
    if (bytes_min > 0) schema["minLength"] = bytes_min > 1 && bytes_min == bytes_max ? bytes_min : 1;
    schema["pattern"] = "^[^\\u0000]*$";
    return schema;
  }
  static Schema free_text(std::size_t bytes_max) { return {{"type", "string"}, {"maxLength", bytes_max}}; }
  static Schema name() { return {{"type", "string"}, {"pattern", name_pattern}}; }
  static Schema number(std::uint64_t min, std::uint64_t max) {
    return {{"type", "integer"}, {"minimum", min}, {"maximum", max}};
  }
  static Schema list(Schema items, std::size_t count_max) {
    return {{"type", "array"}, {"items", std::move(items)}, {"maxItems", count_max}};
  }
  /// `choices`: words, separated by a comma and a space.
  static Schema word(std::string_view choices) {
    Schema words = Schema::array();
    while (!choices.empty()) {
      const std::size_t end = std::min(choices.find(", "), choices.size());
      words.push_back(choices.substr(0, end));
      choices.remove_prefix(std::min(end + 2, choices.size()));
    }
    return {{"type", "string"}, {"enum", std::move(words)}};
  }

  void add(const std::string& name, Schema schema, bool is_optional) {
    if (!is_optional) required_.insert(name);
    if (nullable_.contains(name)) schema["type"] = {schema["type"], "null"};
    properties_[name] = std::move(schema);
  }
  void make_optional(const std::string& name) { optional_.insert(name); }
  void make_nullable(const std::string& name) { nullable_.insert(name); }
  /// At least one of all members is needed.
  void need_any() { needs_any_ = true; }
  /// One of these is needed: exactly one if `exactly`.
  void need_one(std::initializer_list<const char*> names, bool exactly) {
    Schema& rule = rules_[exactly ? "oneOf" : "anyOf"] = Schema::array();
    for (const char* const name : names) rule.push_back({{"required", Schema::array({name})}});
  }
  /// At most one of these two may be there.
  void refuse_both(const char* one, const char* other) {
    rules_["not"] = {{"required", Schema::array({one, other})}};
  }
  /// Each of these two needs the other one.
  void need_both(const char* one, const char* other) {
    rules_["dependentRequired"][one] = {other};
    rules_["dependentRequired"][other] = {one};
  }

  /// Removes a member that is given elsewhere.
  void remove(const std::string& name) {
    properties_.erase(name);
    required_.erase(name);
    if (const auto pairs = rules_.find("dependentRequired"); pairs != rules_.end() && pairs->contains(name))
      rules_.erase("dependentRequired");
  }
  [[nodiscard]] Schema take() const {
    Schema schema{{"type", "object"}};
    for (const std::string& name : required_) {
      if (!optional_.contains(name)) schema["required"].push_back(name);
    }
    if (!properties_.empty()) schema["properties"] = properties_;
    schema.update(rules_);
    if (!needs_any_) return schema;
    for (const auto& [name, member] : properties_.items())
      schema["anyOf"].push_back({{"required", Schema::array({name})}});
    return schema;
  }

 private:
  Schema properties_ = Schema::object();
  Schema rules_ = Schema::object();
  std::set<std::string> required_;
  std::set<std::string> optional_;
  std::set<std::string> nullable_;
  bool needs_any_ = false;
};

/// Returns the schema of a command's members, without `cmd`. Thread: any.
LIGHTQ_INLINE ObjectSchema request_schema(std::string_view cmd);

/// Returns the schema of the reply to a command. `is_of_broker`: of `stats` without a topic. Schemas to which
/// it refers as `#/components/schemas/NAME` are added to `definitions`, by their names. Thread: any.
LIGHTQ_INLINE ObjectSchema::Schema reply_schema(std::string_view cmd, bool is_of_broker,
                                                ObjectSchema::Schema& definitions);

}  // namespace lightq::inline v1::protocol::detail
