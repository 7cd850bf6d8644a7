/// Writes JSON for the commands' output. Layer: cli.
#include "client/json_text.hpp"

#include <lightq/base/base64.hpp>
#include <lightq/base/shown_text.hpp>

namespace lightq::cli {
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = lightq::detail::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_hex(std::string& to, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    to += digits[byte >> 4];
    to += digits[byte & 0xF];
  }
}

void append_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      to += "\\u00";
      append_hex(to, {&c, 1});
    } else {
      to += c;
    }
  }
}

void append_base64(std::string& to, std::string_view bytes) {
  to += to_base64(bytes);
}

JsonObject& JsonObject::add_raw(std::string_view name, std::string_view json) {
  if (text_.size() > 1) text_ += ',';
  text_ += '"';
  append_escaped(text_, name);
  text_ += "\":";
  text_ += json;
  return *this;
}

JsonObject& JsonObject::add(std::string_view name, std::string_view text) {
  std::string quoted = "\"";
  append_escaped(quoted, text);
  return add_raw(name, quoted += '"');
}

JsonObject& JsonObject::add_bytes(const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes)) return add(name, bytes);
  std::string quoted = "\"";
  append_base64(quoted, bytes);
  return add_raw(name + "_base64", quoted += '"');
}

}  // namespace lightq::cli
