/// Reads and writes the fields of one JSON object. Reading is strict: it never converts, wraps or guesses a
/// value. Layer: protocol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_scan.hpp>
#include <lightq/protocol/json_schema.hpp>

namespace lightq::inline v1::protocol::detail {

/// A document that was read. It finds a name in logarithmic time, however many names a peer sends.
using Json = nlohmann::json;
/// A document to write. Its fields keep the order of docs/protocol.md.
using OrderedJson = nlohmann::ordered_json;

/// The largest number that is accepted. Programs differ in how they read larger JSON numbers.
inline constexpr std::uint64_t number_max = (std::uint64_t{1} << 63) - 1;

/// Builds a document and finds names that occur twice in an object. The library's own callback for names is
/// too slow: after each object in an array it walks the whole array.
class NameWatch : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  explicit NameWatch(Json& to) : Base(to, /*allow_exceptions_=*/false) {}

  bool start_object(std::size_t size) {
    names_.emplace_back();
    return Base::start_object(size);
  }
  bool end_object() {
    names_.pop_back();
    return Base::end_object();
  }
  bool key(std::string& name) {
    std::set<std::string>& names = names_.back();
    if (names.insert(name).second) return Base::key(name);
    if (repeated_.empty()) repeated_ = name.substr(0, 64);
    return Base::key(name);
  }
  /// Returns the first repeated name, cut at 64 bytes; empty if there was none.
  [[nodiscard]] const std::string& repeated() const { return repeated_; }

 private:
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;
  std::vector<std::set<std::string>> names_;  // one set for each object that is being read, the innermost
                                              // last
  std::string repeated_;
};

/// Parses `text` as an object in which no object has a name twice. Errors: request_too_large, invalid_json
/// (not JSON, not UTF-8, too deep, a number out of range), invalid_request (a repeated name), invalid_cmd
/// (JSON, but not an object).
inline Result<Json> parse_object(std::string_view text, std::size_t bytes_max) {
  if (auto fault = scan_json(text, bytes_max)) return *std::move(fault);
  Json object;
  NameWatch watch(object);
  if (!Json::sax_parse(text.begin(), text.end(), &watch))
    return Error{ErrorCode::invalid_json, "the message is not valid JSON"};
  if (!object.is_object()) return Error{ErrorCode::invalid_cmd, "invalid_cmd"};
  if (!watch.repeated().empty())
    return Error{ErrorCode::invalid_request, watch.repeated() + ": given more than once"};
  return object;
}

/// Returns the text of a document. Strings that are not UTF-8 (file names, for example) get replacement
/// characters.
inline std::string dump(const OrderedJson& document) {
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Reads fields in turn and keeps the first error; reads after an error return defaults. Error texts never
/// quote a value, because it may be a secret. With a schema the reader reads nothing: it describes the
/// members that are asked for, as if each was there, and has no errors. Lifetime: the object and the schema
/// must outlive the reader.
class FieldReader {
 public:
  explicit FieldReader(const Json& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}
  FieldReader(const Json& object, ObjectSchema& schema) : object_(object), schema_(&schema) {}

  [[nodiscard]] bool has(const char* name) const {
    if (schema_ == nullptr) return object_.contains(name);
    schema_->make_optional(name);
    return true;
  }
  /// Returns true if one of the members is given. A schema says that one is needed.
  [[nodiscard]] bool has_any(std::initializer_list<const char*> names) const {
    if (schema_ != nullptr) schema_->need_one(names, /*exactly=*/false);
    return std::ranges::count_if(names, [&](const char* name) { return has(name); }) > 0;
  }
  /// Returns true if exactly one of the members is given. A schema says that this is needed.
  [[nodiscard]] bool has_one(std::initializer_list<const char*> names) const {
    if (schema_ != nullptr) schema_->need_one(names, /*exactly=*/true);
    const auto given = std::ranges::count_if(names, [&](const char* name) { return has(name); });
    return schema_ != nullptr || given == 1;
  }
  /// Returns true if both members are given. A schema says that this is not allowed.
  [[nodiscard]] bool has_both(const char* one, const char* other) const {
    if (schema_ != nullptr) schema_->refuse_both(one, other);
    return has(one) && has(other) && schema_ == nullptr;
  }
  /// Returns true if one of two members is given. A schema says that each needs the other one.
  [[nodiscard]] bool has_either(const char* one, const char* other) const {
    if (schema_ != nullptr) schema_->need_both(one, other);
    const bool has_other = has(other);
    return has(one) || has_other;
  }
  /// Fails if a request has no member that it could have.
  void need_any(bool has_one, const char* name) {
    if (schema_ != nullptr) schema_->need_any();
    if (!error_ && !has_one) fail(name, "missing, as is every other setting");
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  void fail(std::string_view name, std::string_view what) {
    if (!error_ && schema_ == nullptr) {
      error_ = Error{ErrorCode::invalid_request, prefix_ + std::string(name) + ": " + std::string(what)};
    }
  }

  /// Returns a string of bytes_min to bytes_max bytes without NUL. If the field is missing: an error, or ""
  /// if `optional`.
  std::string text(const char* name, std::size_t bytes_min, std::size_t bytes_max, bool optional = false) {
    if (describes(name, optional, [&] { return ObjectSchema::text(bytes_min, bytes_max); })) return {};
    const auto range = std::to_string(bytes_min) + " to " + std::to_string(bytes_max) + " bytes";
    const Json* value = find(name, optional, "a text of " + range);
    if (value == nullptr) return {};
    const auto* text = value->get_ptr<const std::string*>();
    if (text == nullptr || text->size() < bytes_min || text->size() > bytes_max ||
        text->find('\0') != std::string::npos) {
      fail(name, "must be a text of " + range + " without NUL");
      return {};
    }
    return *text;
  }
  /// Returns a string of at most `bytes_max` bytes, which may have NUL; "" if the field is missing.
  std::string free_text(const char* name, std::size_t bytes_max) {
    if (describes(name, true, [&] { return ObjectSchema::free_text(bytes_max); })) return {};
    const Json* value = find(name, true, "");
    if (value == nullptr) return {};
    const auto* text = value->get_ptr<const std::string*>();
    if (text != nullptr && text->size() <= bytes_max) return *text;
    fail(name, "must be a text of at most " + std::to_string(bytes_max) + " bytes");
    return {};
  }

  /// Returns a whole number from `min` to `max`, or `fallback` if the field is missing.
  std::uint64_t number(const char* name, std::uint64_t min, std::uint64_t max, std::uint64_t fallback) {
    if (describes(name, true, [&] { return ObjectSchema::number(min, max); })) return fallback;
    const Json* value = find(name, true, "");
    return value == nullptr ? fallback : number_of(name, *value, min, max, fallback);
  }
  /// Returns a whole number from `min` to `max`. `what`: the value, for the error if the field is missing.
  std::uint64_t needed_number(const char* name, std::string_view what, std::uint64_t min, std::uint64_t max) {
    if (describes(name, false, [&] { return ObjectSchema::number(min, max); })) return min;
    const Json* value = find(name, false, what);
    return value == nullptr ? min : number_of(name, *value, min, max, min);
  }

  /// Returns true if the field is there and is `null`.
  [[nodiscard]] bool is_null(const char* name) const {
    if (schema_ != nullptr) schema_->make_nullable(name);
    const auto found = object_.find(name);
    return found != object_.end() && found->is_null();
  }

  /// Returns a list of at most `count_max` whole numbers from `min` to `max`. A missing list is empty.
  std::vector<std::uint64_t> numbers(const char* name, std::size_t count_max, std::uint64_t min,
                                     std::uint64_t max) {
    const auto schema = [&] { return ObjectSchema::list(ObjectSchema::number(min, max), count_max); };
    if (describes(name, true, schema)) return {};
    const Json* value = find(name, true, "");
    if (value == nullptr) return {};
    return numbers_of(*value, name, count_max, min, max);
  }
  /// Returns a list of at most `count_max` pairs of whole numbers. A missing list is empty.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs(const char* name, std::size_t count_max) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    if (describes(name, true, [&] {
          auto pair = ObjectSchema::list(ObjectSchema::number(0, number_max), 2);
          pair["minItems"] = 2;
          return ObjectSchema::list(std::move(pair), count_max);
        }))
      return found;
    const Json* value = find(name, true, "");
    if (value == nullptr) return found;
    if (!value->is_array() || value->size() > count_max)
      fail(name, "must be a list of at most " + std::to_string(count_max) + " pairs of whole numbers");
    if (error_) return found;
    for (const Json& entry : *value) {
      const auto both = numbers_of(entry, name, 2, 0, number_max);
      if (!error_ && both.size() != 2) fail(name, "must be a list of pairs of whole numbers");
      if (error_) return {};
      found.emplace_back(both[0], both[1]);
    }
    return found;
  }

  bool boolean(const char* name, bool fallback) {
    if (describes(name, true, [] { return ObjectSchema::Schema{{"type", "boolean"}}; })) return fallback;
    const Json* value = find(name, true, "");
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) {
      fail(name, "must be true or false");
      return fallback;
    }
    return value->get<bool>();
  }

  /// Returns the enumerator for one of `choices`, the words of Enum (for example "block, reject"). If the
  /// field is missing: `fallback`, or an error if there is no fallback.
  template <typename Enum>
  Enum word(const char* name, std::string_view choices, std::optional<Enum> fallback) {
    if (describes(name, fallback.has_value(), [&] { return ObjectSchema::word(choices); }))
      return fallback.value_or(Enum{});
    const Json* value = find(name, fallback.has_value(), "one of " + std::string(choices));
    if (value == nullptr) return fallback.value_or(Enum{});
    const auto* text = value->get_ptr<const std::string*>();
    const auto found = text == nullptr ? std::nullopt : from_word<Enum>(*text);
    if (!found) fail(name, "must be one of " + std::string(choices));
    return found.value_or(Enum{});
  }

  /// Calls `take` with each string of a list of at most `count_max`. `take` returns false for a string that
  /// is not allowed in the list, which is an error. A missing list is an error.
  template <typename Take>
  void texts(const char* name, std::size_t count_max, Take&& take) {
    const Json* value = find(name, false, "a list");
    if (value == nullptr) return;
    if (!value->is_array() || value->size() > count_max)
      return fail(name, "must be a list of at most " + std::to_string(count_max));
    for (const Json& entry : *value) {
      const auto* text = entry.get_ptr<const std::string*>();
      if (text == nullptr || !take(*text)) return fail(name, "must be a list of permitted words");
    }
  }

  /// As `texts`, for a list of at least one of `choices`, as of `word`. `take` checks both.
  template <typename Take>
  void words(const char* name, std::string_view choices, std::size_t count_max, Take&& take) {
    if (describes(name, false, [&] {
          auto schema = ObjectSchema::list(ObjectSchema::word(choices), count_max);
          schema["minItems"] = 1;
          return schema;
        }))
      return;
    texts(name, count_max, std::forward<Take>(take));
  }

  /// Calls `read` with a FieldReader for each object of a list of at most `count_max`. A missing list counts
  /// as empty.
  template <typename Read>
  void objects(const char* name, std::size_t count_max, Read&& read) {
    if (describes(name, true, [&] {
          ObjectSchema items;
          FieldReader nested(object_, items);
          read(nested);
          return ObjectSchema::list(items.take(), count_max);
        }))
      return;
    const Json* value = find(name, true, "");
    if (value == nullptr) return;
    if (!value->is_array() || value->size() > count_max)
      return fail(name, "must be a list of at most " + std::to_string(count_max));
    for (const Json& entry : *value) {
      if (!entry.is_object()) return fail(name, "must be a list of objects");
      FieldReader nested(entry, prefix_ + name + ".");
      read(nested);
      if (nested.error() && !error_) error_ = nested.error();
      if (error_) return;
    }
  }

  /// Returns the name of a topic or group; nothing after an error.
  std::optional<TopicName> name(const char* field) {
    if (describes(field, false, [] { return ObjectSchema::name(); })) return TopicName::parse("name");
    const Json* value = find(field, false, name_rule);
    if (value == nullptr) return std::nullopt;
    const auto* text = value->get_ptr<const std::string*>();
    auto parsed = text == nullptr ? std::nullopt : TopicName::parse(*text);
    if (!parsed) fail(field, "must be " + std::string(name_rule));
    return parsed;
  }

 private:
  std::vector<std::uint64_t> numbers_of(const Json& list, const char* name, std::size_t count_max,
                                        std::uint64_t min, std::uint64_t max) {
    std::vector<std::uint64_t> found;
    const std::string rule = "must be a list of at most " + std::to_string(count_max) +
                             " whole numbers from " + std::to_string(min) + " to " + std::to_string(max);
    if (!list.is_array() || list.size() > count_max) return fail(name, rule), found;
    for (const Json& entry : list) {
      const bool fits = entry.is_number_unsigned() && entry.get<std::uint64_t>() >= min &&
                        entry.get<std::uint64_t>() <= max;
      if (!fits) return fail(name, rule), std::vector<std::uint64_t>();
      found.push_back(entry.get<std::uint64_t>());
    }
    return found;
  }

  static constexpr const char* name_rule =
      "1 to 128 of the characters A-Z a-z 0-9 . _ - and must not begin with a dot or a dash";

  /// Describes the member if there is a schema. `schema` returns that of the member.
  template <typename Schema>
  bool describes(const char* name, bool is_optional, Schema&& schema) {
    if (schema_ != nullptr) schema_->add(name, schema(), is_optional);
    return schema_ != nullptr;
  }

  std::uint64_t number_of(const char* name, const Json& value, std::uint64_t min, std::uint64_t max,
                          std::uint64_t fallback) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() >= min && value.get<std::uint64_t>() <= max)
      return value.get<std::uint64_t>();
    fail(name, "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    return fallback;
  }

  const Json* find(const char* name, bool optional, std::string_view what) {
    if (error_) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    if (!optional) fail(name, "missing; must be " + std::string(what));
    return nullptr;
  }

  const Json& object_;
  std::string prefix_;
  ObjectSchema* schema_ = nullptr;
  std::optional<Error> error_;
};

}  // namespace lightq::inline v1::protocol::detail
