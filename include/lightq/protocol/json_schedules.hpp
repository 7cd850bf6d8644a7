/// Recurring schedules as JSON members, in requests, replies and the catalogue. docs/protocol.md,
/// "set_schedule" and "list_schedules". Layer: protocol.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/base64.hpp>
#include <lightq/base/shown_text.hpp>
#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::inline v1::protocol::detail {

inline constexpr std::size_t cron_bytes_max = 256;
inline constexpr std::size_t zone_bytes_max = 64;

/// Returns true if the bytes are UTF-8 and contain only few characters that JSON escapes.
inline bool is_plain_text(std::string_view bytes) {
  constexpr std::size_t escaped_part = 8;  // at most an eighth may be escaped
  std::size_t escaped = 0;
  for (std::string_view left = bytes; !left.empty();) {
    const std::size_t length = lightq::detail::utf8_length(left);
    if (length == 0) return false;
    const char first = left.front();
    const bool is_short = first == '"' || first == '\\' || first == '\n' || first == '\r' || first == '\t';
    if (!is_short && static_cast<unsigned char>(first) < ' ') return false;
    escaped += is_short ? 1 : 0;
    left.remove_prefix(length);
  }
  return escaped <= std::max<std::size_t>(bytes.size() / escaped_part, 1024);
}

/// Writes a payload as `payload` or, if it is no text, as `payload_base64`.
inline void write_payload(OrderedJson& to, std::string_view payload) {
  if (is_plain_text(payload)) {
    to["payload"] = payload;
  } else {
    to["payload_base64"] = to_base64(payload);
  }
}

/// Reads a payload in one of its two forms; empty if there is none.
inline std::string read_payload(FieldReader& fields) {
  if (fields.has_both("payload", "payload_base64"))
    fields.fail("payload", "give one of payload and payload_base64");
  std::string payload = fields.free_text("payload", limits::schedule_payload_bytes_max);
  if (!fields.has("payload_base64")) return payload;
  const std::string text =
      fields.text("payload_base64", 0, (limits::schedule_payload_bytes_max + 2) / 3 * 4, true);
  auto bytes = from_base64(text);
  if (!bytes || bytes->size() > limits::schedule_payload_bytes_max) {
    fields.fail("payload_base64", "must be base64 with padding, of at most " +
                                      std::to_string(limits::schedule_payload_bytes_max) + " bytes");
    return {};
  }
  return *std::move(bytes);
}

inline ScheduleSettings read_schedule(FieldReader& fields) {
  ScheduleSettings settings;
  settings.cron = fields.text("cron", 1, cron_bytes_max);
  if (fields.has("zone")) settings.zone = fields.text("zone", 1, zone_bytes_max);
  settings.missed = fields.word<MissedFirings>("missed", "skip, once", MissedFirings::skip);
  settings.key = fields.free_text("key", limits::key_bytes_max);
  std::size_t bytes = settings.key.size();
  fields.objects("headers", limits::headers_max, [&](FieldReader& header) {
    settings.headers.push_back({header.text("name", 1, limits::header_name_bytes_max),
                                header.free_text("value", limits::schedule_attributes_bytes_max)});
    bytes += settings.headers.back().name.size() + settings.headers.back().value.size();
  });
  if (bytes > limits::schedule_attributes_bytes_max)
    fields.fail("headers", "key and headers must have at most " +
                               std::to_string(limits::schedule_attributes_bytes_max) + " bytes together");
  settings.payload = read_payload(fields);
  return settings;
}

/// Writes all but the payload.
inline void write_schedule_rule(OrderedJson& to, const ScheduleSettings& settings) {
  to["cron"] = settings.cron;
  to["zone"] = settings.zone;
  to["missed"] = to_word(settings.missed);
  if (!settings.key.empty()) to["key"] = settings.key;
  if (settings.headers.empty()) return;
  OrderedJson headers = OrderedJson::array();
  for (const auto& [name, value] : settings.headers) headers.push_back({{"name", name}, {"value", value}});
  to["headers"] = std::move(headers);
}

inline void write_schedule(OrderedJson& to, const ScheduleSettings& settings) {
  write_schedule_rule(to, settings);
  write_payload(to, settings.payload);
}

inline ScheduleListing read_listed_schedule(FieldReader& fields) {
  constexpr std::size_t text_bytes_max = 64 * limits::KiB;
  ScheduleListing listing;
  listing.topic = fields.text("topic", 0, text_bytes_max, true);
  listing.name = fields.text("name", 0, text_bytes_max, true);
  listing.settings = read_schedule(fields);
  listing.payload_bytes = fields.number("payload_bytes", 0, number_max, 0);
  listing.paused = fields.boolean("paused", false);
  listing.next_ms = fields.numbers("next_ms", SchedulePage::times_max, 0, number_max);
  listing.fired = fields.number("fired", 0, number_max, 0);
  listing.last_ms = fields.number("last_ms", 0, number_max, 0);
  listing.waiting_by = fields.free_text("waiting_by", text_bytes_max);
  return listing;
}

}  // namespace lightq::inline v1::protocol::detail
