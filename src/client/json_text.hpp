/// Writes JSON for the commands' output, one object per line. Layer: cli.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace lightq::cli {

/// Appends `text` in the form that it has between a JSON string's quotes. Requires: valid UTF-8.
void append_escaped(std::string& to, std::string_view text);
/// Returns true if the bytes are well-formed UTF-8.
bool is_utf8(std::string_view text);
/// Appends the bytes as hexadecimal digits.
void append_hex(std::string& to, std::string_view bytes);
/// Appends the bytes in Base64 (RFC 4648), with padding.
void append_base64(std::string& to, std::string_view bytes);

/// Builds an object member by member.
class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view text);
  JsonObject& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
  template <std::integral Value>
  JsonObject& add(std::string_view name, Value value) {
    if constexpr (std::same_as<Value, bool>)
      return add_raw(name, value ? "true" : "false");
    else
      return add_raw(name, std::to_string(value));
  }
  /// Adds `bytes` as `name` if they are UTF-8, otherwise as `name_base64`.
  JsonObject& add_bytes(const std::string& name, std::string_view bytes);
  /// Adds a value that is already JSON.
  JsonObject& add_raw(std::string_view name, std::string_view json);
  [[nodiscard]] std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

/// Builds an array of values that are already JSON.
class JsonArray {
 public:
  void add(std::string_view json) { (text_.size() == 1 ? text_ : text_ += ',') += json; }
  [[nodiscard]] std::string text() const { return text_ + "]"; }

 private:
  std::string text_ = "[";
};

}  // namespace lightq::cli
