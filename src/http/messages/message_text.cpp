/// Messages as JSON, and back. Layer: http.
#include "http/messages/message_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/base64.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/base/shown_text.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::broker {

namespace {

using protocol::detail::FieldReader;
using protocol::detail::Json;

constexpr std::size_t ranges_max = 1024;
constexpr std::int64_t delay_ms_max = limits::delay_us_max / 1000;

Error invalid_field(std::string_view name, std::string_view why) {
  return {ErrorCode::invalid_request, std::string(name) + ": " + std::string(why)};
}

/// Returns a whole number from 1 to `most`; 0 if the text is empty. Nothing for another text.
std::optional<std::int64_t> number_in(std::string_view text, std::int64_t most) {
  if (text.empty()) return 0;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && 1 <= number && number <= most ? std::optional(number) : std::nullopt;
}

Result<void> check(const SentMessage& message) {
  return message.with_attributes([](const Attributes& attributes) -> Result<void> {
    auto checked = attributes.check_for_producer();
    if (checked || checked.error().code != ErrorCode::invalid_argument) return checked;
    return Error{ErrorCode::invalid_request, checked.error().message};
  });
}

constexpr std::string_view header_prefix = "header-";

/// Reads a message's text or base64, by two members of which at most one is given.
std::string read_bytes(FieldReader& fields, const char* text, const char* base64) {
  std::string bytes = fields.free_text(text, limits::http_body_bytes_max);
  if (!fields.has(base64)) return bytes;
  if (fields.has_both(text, base64)) fields.fail(base64, std::string("not beside ") + text);
  auto decoded = from_base64(fields.free_text(base64, limits::http_body_bytes_max));
  if (!decoded) fields.fail(base64, "must be base64");
  return decoded.value_or(std::string());
}

SentMessage read_message(FieldReader& fields) {
  SentMessage message;
  message.payload = read_bytes(fields, "payload", "payload_base64");
  message.key = read_bytes(fields, "key", "key_base64");
  message.id = fields.free_text("id", limits::message_id_bytes_max);
  message.time_us = static_cast<std::int64_t>(fields.number("time_us", 1, INT64_MAX, 0));
  message.ttl_ms = static_cast<std::int64_t>(fields.number("ttl_ms", 1, limits::ttl_ms_max, 0));
  message.delay_ms = static_cast<std::int64_t>(fields.number("delay_ms", 1, delay_ms_max, 0));
  message.at_us = static_cast<std::int64_t>(fields.number("at_us", 1, INT64_MAX, 0));
  fields.objects("headers", limits::headers_max, [&](FieldReader& header) {
    std::string name = read_bytes(header, "name", "name_base64");
    message.headers.emplace_back(std::move(name), read_bytes(header, "value", "value_base64"));
  });
  return message;
}

/// Returns the message of one object. Errors: invalid_request, too_large.
Result<SentMessage> message_of(const Json& object) {
  constexpr std::string_view known[] = {"payload", "payload_base64", "key",    "key_base64", "id",
                                        "headers", "time_us",        "ttl_ms", "delay_ms",   "at_us"};
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) == std::end(known))
      return invalid_field(without_controls(name.substr(0, 64)), "there is no such member");
  }
  FieldReader fields(object);
  SentMessage message = read_message(fields);
  if (fields.error()) return *fields.error();
  if (const auto checked = check(message); !checked) return checked.error();
  return message;
}

AttributeKinds kinds_of(const SentMessage& message) {
  return message.with_attributes([](const Attributes& attributes) { return AttributeKinds(attributes); });
}

bool is_readable(std::string_view text) {
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text[0]);
    if (lead == 0x7F || (lead < 0x20 && lead != '\n' && lead != '\t' && lead != '\r')) return false;
    const std::size_t length = lightq::detail::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_text(std::string_view text, std::string& to) {
  to += '"';
  for (const char c : text) {
    switch (c) {
      case '"': to += "\\\""; break;
      case '\\': to += "\\\\"; break;
      case '\n': to += "\\n"; break;
      case '\r': to += "\\r"; break;
      case '\t': to += "\\t"; break;
      default: to += c;
    }
  }
  to += '"';
}

/// Appends a member with bytes: as text if they are readable, else in base64 with a name that says so.
void append_bytes(std::string_view name, std::string_view bytes, std::string& to) {
  to.append("\"").append(name);
  if (is_readable(bytes)) {
    to += "\":";
    return append_text(bytes, to);
  }
  to.append("_base64\":\"").append(to_base64(bytes)).append("\"");
}

void append_number(std::string_view name, std::int64_t number, std::string& to) {
  to.append("\"").append(name).append("\":").append(std::to_string(number));
}

}  // namespace

protocol::detail::ObjectSchema::Schema message_schema() {
  protocol::detail::ObjectSchema schema;
  const Json nothing = Json::object();
  FieldReader fields(nothing, schema);
  (void)read_message(fields);
  auto message = schema.take();
  message["additionalProperties"] = false;
  return message;
}

Result<MessagesToPublish> message_of_request(const HttpRequest& request) {
  SentMessage message;
  message.payload = request.body;
  std::set<std::string_view> once;
  for (const auto& [name, value] : request.fields) {
    if (!name.starts_with(header_prefix) && !once.insert(name).second)
      return invalid_field("Lightq-" + without_controls(name), "is given more than once");
    if (name == "key") {
      message.key = value;
    } else if (name == "id") {
      message.id = value;
    } else if (name == "ttl") {
      const auto ttl = number_in(value, limits::ttl_ms_max);
      if (!ttl) return invalid_field("Lightq-Ttl", "must be a number of milliseconds");
      message.ttl_ms = *ttl;
    } else if (name == "time") {
      const auto time = number_in(value, INT64_MAX);
      if (!time) return invalid_field("Lightq-Time", "must be a number of microseconds since 1970");
      message.time_us = *time;
    } else if (name == "delay") {
      const auto delay = number_in(value, delay_ms_max);
      if (!delay) return invalid_field("Lightq-Delay", "must be a number of milliseconds, at most ten years");
      message.delay_ms = *delay;
    } else if (name == "at") {
      const auto at = number_in(value, INT64_MAX);
      if (!at) return invalid_field("Lightq-At", "must be a number of microseconds since 1970");
      message.at_us = *at;
    } else if (name.starts_with(header_prefix)) {
      message.headers.emplace_back(name.substr(header_prefix.size()), value);
    } else {
      return invalid_field("Lightq-" + without_controls(name), "there is no such header");
    }
  }
  if (const auto checked = check(message); !checked) return checked.error();
  SentMessagePacker packer(kinds_of(message));
  packer.add(message);
  MessagesToPublish messages = packer.take();
  messages.request_id = std::move(message.id);
  messages.are_delayed = message.is_delayed();
  return messages;
}

void MessageLines::read_line() {
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  std::string_view line = std::string_view(text_).substr(at_, end - at_);
  at_ = std::min(end + 1, text_.size());
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return;
  const auto object = protocol::detail::parse_object(line, limits::http_body_bytes_max);
  auto message = object ? message_of(*object) : Result<SentMessage>(object.error());
  if (!message) {
    const bool is_no_object = message.error().code == ErrorCode::invalid_cmd;
    fault_ = Error{
        is_no_object ? ErrorCode::invalid_request : message.error().code,
        "line " + std::to_string(line_) + ": " + (is_no_object ? "not an object" : message.error().message)};
    return;
  }
  kinds_ = kinds_ | kinds_of(*message);
  messages_.push_back(std::move(*message));
}

void MessageLines::begin_packing() {
  if (messages_.empty()) {
    fault_ = Error{ErrorCode::invalid_request, "there is no message in the content"};
    return;
  }
  are_delayed_ = messages_.front().is_delayed();
  packer_.emplace(kinds_);
}

std::size_t MessageLines::pack_message() {
  const SentMessage& message = messages_.front();
  const std::size_t bytes = message.payload.size();
  if (message.is_delayed() != are_delayed_) {
    fault_ = Error{ErrorCode::invalid_request,
                   "delay_ms and at_us: all messages of a content have one, or none has"};
    return bytes;
  }
  packer_->add(message);
  messages_.pop_front();
  return bytes;
}

bool MessageLines::work() {
  std::size_t bytes = 0;
  for (std::size_t done = 0; done < lines_at_once && bytes < bytes_at_once; ++done) {
    if (fault_) return true;
    if (at_ < text_.size()) {
      const std::size_t begin = at_;
      read_line();
      bytes += at_ - begin;
    } else if (!packer_) {
      begin_packing();
    } else if (!messages_.empty()) {
      bytes += pack_message();
    } else {
      return true;
    }
  }
  return false;
}

Result<MessagesToPublish> MessageLines::take() {
  if (fault_) return *fault_;
  MessagesToPublish packed = packer_->take();
  packed.are_delayed = are_delayed_;
  return packed;
}

void append_message(const ReceivedMessage& message, std::string& to) {
  to += '{';
  append_number("offset", static_cast<std::int64_t>(message.offset.value), to);
  to += ',';
  if (message.marks.delivery > 0) {
    append_number("delivery", message.marks.delivery, to);
    to += ',';
  }
  if (message.marks.expired) to += "\"expired\":true,";
  append_number("stored_us", message.stored.us, to);
  if (message.time.us != 0) {
    to += ',';
    append_number("time_us", message.time.us, to);
  }
  if (!message.key.empty()) {
    to += ',';
    append_bytes("key", message.key, to);
  }
  if (!message.headers.empty()) {
    to += ",\"headers\":[";
    bool is_first = true;
    for (const auto& [name, value] : message.headers) {
      to += std::exchange(is_first, false) ? "{" : ",{";
      append_bytes("name", name, to);
      to += ',';
      append_bytes("value", value, to);
      to += '}';
    }
    to += ']';
  }
  to += ',';
  append_bytes("payload", message.payload, to);
  to += '}';
}

namespace {

void append_list(const std::vector<ReceivedMessage>& messages, std::string& to) {
  to += ",\"messages\":[";
  bool is_first = true;
  for (const ReceivedMessage& message : messages) {
    if (!std::exchange(is_first, false)) to += ',';
    append_message(message, to);
  }
  to += ']';
}

}  // namespace

std::string name_of_lease(std::uint64_t lease) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name(16, '0');
  for (std::size_t at = name.size(); at > 0; lease >>= 4U) name[--at] = digits[lease & 0xFU];
  return name;
}

std::uint64_t lease_named(std::string_view name) {
  std::uint64_t lease = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), lease, 16);
  return name.size() == 16 && error == std::errc{} && end == name.data() + name.size() ? lease : 0;
}

std::string text_of(const Leased& leased, std::string_view lease) {
  std::string text = "{";
  if (!lease.empty()) text.append("\"lease\":\"").append(lease).append("\",");
  append_number("lost", static_cast<std::int64_t>(leased.lost), text);
  append_list(leased.messages, text);
  return text += "}\n";
}

std::string text_of(const Browsed& browsed) {
  std::string text = "{";
  append_number("next", static_cast<std::int64_t>(browsed.next.value), text);
  text += ',';
  append_number("lost", static_cast<std::int64_t>(browsed.lost), text);
  if (browsed.scanned) {
    text += ',';
    append_number("scanned", static_cast<std::int64_t>(*browsed.scanned), text);
  }
  append_list(browsed.messages, text);
  return text += "}\n";
}

std::string text_of(const std::vector<OffsetRange>& ranges) {
  std::string text = "[";
  for (const OffsetRange& range : ranges) {
    if (text.size() > 1) text += ',';
    text += '[' + std::to_string(range.begin.value) + ',' + std::to_string(range.end.value - 1) + ']';
  }
  return text += ']';
}

Result<std::vector<OffsetRange>> ranges_of(std::string_view text) {
  const Error wrong{
      ErrorCode::invalid_request,
      "offsets: must be ascending offsets and ranges, such as 3,5-9; at most " + std::to_string(ranges_max)};
  std::vector<OffsetRange> ranges;
  const auto read = [&text](std::uint64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc{} && number < INT64_MAX;
  };
  while (true) {
    std::uint64_t first = 0;
    if (!read(first)) return wrong;
    std::uint64_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!read(last) || last < first) return wrong;
    }
    if (!ranges.empty() && first < ranges.back().end.value) return wrong;
    if (!ranges.empty() && first == ranges.back().end.value) {
      ranges.back().end = {last + 1};
    } else {
      ranges.push_back({{first}, {last + 1}});
    }
    if (ranges.size() > ranges_max) return wrong;
    if (text.empty()) return ranges;
    if (!text.starts_with(',')) return wrong;
    text.remove_prefix(1);
  }
}

}  // namespace lightq::broker
