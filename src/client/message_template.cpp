/// Formats a message by a named format or a pattern. Layer: cli.
#include "client/message_template.hpp"

#include <array>
#include <cstdio>
#include <ctime>

#include "client/attributes_text.hpp"
#include "client/json_text.hpp"

namespace lightq::cli {
namespace {

constexpr std::string_view fields = "otTspexkh";
constexpr char json_field = 'j';  // internal, not for patterns

std::optional<std::string_view> pattern_of(std::string_view word) {
  if (word == "raw") return "%p\\n";
  if (word == "hex") return "%x\\n";
  if (word == "text") return "%o\\t%t\\t%s\\t%e\\n";
  if (word.find('%') == std::string_view::npos) return std::nullopt;
  return word;
}

std::optional<char> unescaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case '0': return '\0';
    case '\\': return '\\';
    default: return std::nullopt;
  }
}

void append_json(std::string& to, const LoggedMessage& message) {
  JsonObject object;
  object.add("offset", message.offset.value)
      .add("time", format_time(message.time))
      .add("time_us", message.time.us)
      .add("size", message.payload.size())
      .add_bytes("payload", message.payload);
  add_attributes(object, message.attributes);
  to += object.text();
}

}  // namespace

std::string format_time(Timestamp time) {
  std::int64_t seconds = time.us / 1'000'000;
  std::int64_t micros = time.us % 1'000'000;
  if (micros < 0) {
    --seconds;
    micros += 1'000'000;
  }
  const auto since = static_cast<std::time_t>(seconds);
  std::tm parts{};
  // Only damage or a wrong clock produces times outside the calendar.
  if (gmtime_r(&since, &parts) == nullptr) return std::to_string(time.us) + "us";
  std::array<char, 40> date{};
  std::array<char, 16> fraction{};
  const std::size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(fraction.data(), fraction.size(), ".%06dZ", static_cast<int>(micros));
  return std::string(date.data(), length) + fraction.data();
}

void MessageTemplate::append_text(char c) {
  if (parts_.empty() || parts_.back().field != 0) parts_.push_back({});
  parts_.back().text += c;
}

std::optional<MessageTemplate> MessageTemplate::parse(std::string_view text) {
  MessageTemplate made;
  if (text == "json") {
    made.parts_.push_back({json_field, {}});
    made.append_text('\n');
    return made;
  }
  const auto pattern = pattern_of(text);
  if (!pattern) return std::nullopt;
  for (std::size_t at = 0; at < pattern->size(); ++at) {
    const char c = (*pattern)[at];
    if (c != '%' && c != '\\') {
      made.append_text(c);
      continue;
    }
    if (++at == pattern->size()) return std::nullopt;
    const char next = (*pattern)[at];
    if (c == '%' && fields.find(next) != std::string_view::npos) {
      made.parts_.push_back({next, {}});
      continue;
    }
    const auto meant = c == '\\' ? unescaped(next) : next == '%' ? std::optional('%') : std::nullopt;
    if (!meant) return std::nullopt;
    made.append_text(*meant);
  }
  return made;
}

void MessageTemplate::append(std::string& to, const LoggedMessage& message) const {
  for (const Part& part : parts_) {
    if (part.field == 0) {
      to += part.text;
    } else {
      append_field(to, part.field, message);
    }
  }
}

void MessageTemplate::append_field(std::string& to, char field, const LoggedMessage& message) {
  switch (field) {
    case 'o': to += std::to_string(message.offset.value); break;
    case 't': to += format_time(message.time); break;
    case 'T': to += std::to_string(message.time.us); break;
    case 's': to += std::to_string(message.payload.size()); break;
    case 'p': to += message.payload; break;
    case 'e': append_shown(to, message.payload); break;
    case 'x': append_hex(to, message.payload); break;
    case 'k': append_shown(to, message.attributes.key()); break;
    case 'h': append_headers(to, message.attributes); break;
    default: append_json(to, message); break;
  }
}

}  // namespace lightq::cli
