/// Prints a message's key, headers and time as JSON members and as text. Layer: cli.
#include "client/attributes_text.hpp"

namespace lightq::cli {

void add_attributes(JsonObject& to, const AttributesView& attributes) {
  if (!attributes.key().empty()) to.add_bytes("key", attributes.key());
  if (!attributes.headers().empty()) {
    JsonArray array;
    for (const Header header : attributes.headers()) {
      array.add(JsonObject().add_bytes("name", header.name).add_bytes("value", header.value).text());
    }
    to.add_raw("headers", array.text());
  }
  if (attributes.time().us != 0) to.add("producer_time_us", attributes.time().us);
}

void append_headers(std::string& to, const AttributesView& attributes) {
  bool first = true;
  for (const Header header : attributes.headers()) {
    if (!first) to += ',';
    first = false;
    append_shown(to, header.name, ",=");
    to += '=';
    append_shown(to, header.value, ",=");
  }
}

void append_shown(std::string& to, std::string_view bytes, std::string_view also) {
  const bool text = is_utf8(bytes);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || also.find(c) != std::string_view::npos) {
      to += '\\';
      to += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '\t') {
      to += "\\t";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !text)) {
      to += "\\x";
      append_hex(to, {&c, 1});
    } else {
      to += c;
    }
  }
}

}  // namespace lightq::cli
