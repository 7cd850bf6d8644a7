/// The content of the messages that the model publishes: all of it follows from one number.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/batch.hpp>

namespace lightq::model {

/// A message as the model makes it and as consumers must receive it. A plain value.
struct Content {
  std::uint64_t number = 0;

  // The number of a message of a recurring schedule has this bit, and the number of the schedule, the version
  // of its settings and the minute of its time.
  static constexpr std::uint64_t firing_bit = std::uint64_t{1} << 61;
  static constexpr unsigned schedule_shift = 44;
  static constexpr unsigned version_shift = 32;
  static Content firing(std::uint64_t schedule, std::uint64_t version, std::uint64_t minute) {
    return {firing_bit | schedule << schedule_shift | version << version_shift | minute};
  }
  /// Messages from here to `ttl_from` are larger, so that runs with them fill a topic.
  static constexpr std::uint64_t large_from = 500'000;
  [[nodiscard]] bool is_large() const { return large_from <= number && number < ttl_from; }
  [[nodiscard]] bool is_firing() const { return (number & firing_bit) != 0; }
  [[nodiscard]] std::uint64_t schedule() const { return (base() & ~firing_bit) >> schedule_shift; }
  [[nodiscard]] std::uint64_t version() const { return base() >> version_shift & 0xFFF; }
  [[nodiscard]] std::uint64_t minute() const { return base() & 0xFFFF'FFFF; }

  [[nodiscard]] std::string payload() const {
    if (is_firing()) return "f" + std::to_string(base() >> version_shift) + ":";
    if (is_large())
      return "m" + std::to_string(base()) + ":" + std::string(base() % 4 * 1000 + base() % 900, 'x');
    const std::size_t bytes = base() % 11 == 0 ? 300 + base() % 700 : base() % 60;
    return "m" + std::to_string(base()) + ":" + std::string(bytes, 'x');
  }
  [[nodiscard]] std::string key() const {
    const std::uint64_t from = is_firing() ? version() : base();
    return from % 3 == 0 ? "key " + std::to_string(from % 7) : std::string();
  }
  [[nodiscard]] std::string id() const {
    if (is_firing()) return "schedule/s" + std::to_string(schedule() % 2) + "/" + text_of_minute(minute());
    return base() % 5 == 0 ? "id " + std::to_string(base()) : "";
  }
  /// The time to live; 0: none. Messages from `ttl_from` on may have one.
  static constexpr std::uint64_t ttl_from = 1'000'000;
  /// Added to the number of a message that has lost its time to live, because a letter was published anew.
  static constexpr std::uint64_t without_ttl_bit = std::uint64_t{1} << 62;
  [[nodiscard]] std::int64_t ttl_ms() const {
    if (number < ttl_from || (number & without_ttl_bit) != 0) return 0;
    if (is_firing()) return version() % 4 == 1 ? ttl_of_version() : 0;
    if (number % 6 != 0) return 0;
    return static_cast<std::int64_t>(1 + number * 7919 % (number % 12 == 0 ? 600 : 20'000));
  }
  /// Settings of runs in which messages have times to live have versions from here on.
  static constexpr std::uint64_t versions_with_ttl = 0x800;
  [[nodiscard]] std::int64_t ttl_of_version() const {
    return version() < versions_with_ttl ? 0 : static_cast<std::int64_t>(1 + version() * 7919 % 20'000);
  }
  [[nodiscard]] std::string header() const {
    const std::uint64_t from = is_firing() ? version() : base();
    return from % 4 == 0 ? std::to_string(from) : "";
  }

  /// Adds the message to a batch. `due`: as a record has it; 0: none.
  void add_to(BatchBuilder& batch, std::int64_t due = 0, bool with_dues = false) const {
    const std::string key_text = key();
    const std::string id_text = id();
    const std::string header_text = header();
    const Header headers[] = {{"number", header_text}};
    Attributes attributes;
    attributes.key = key_text;
    attributes.id = id_text;
    attributes.ttl = std::chrono::milliseconds(ttl_ms());
    if (!header_text.empty()) attributes.headers = headers;
    attributes.delay = std::chrono::microseconds(due < 0 ? -due : 0);
    attributes.deliver_at = {due > 0 ? due : 0};
    const std::string bytes = payload();
    auto kinds = static_cast<std::uint16_t>(AttributeKinds::all);
    if (with_dues) kinds |= AttributeKinds::dues;
    batch.add(as_byte_view(bytes), attributes, AttributeKinds(kinds));
  }

  /// Returns the number in a payload, or nothing if it is none of these.
  static std::optional<std::uint64_t> number_in(std::string_view payload) {
    if (!payload.starts_with("m")) return std::nullopt;
    std::uint64_t number = 0;
    const auto end = std::from_chars(payload.data() + 1, payload.data() + payload.size(), number);
    return end.ec == std::errc() && *end.ptr == ':' ? std::optional(number) : std::nullopt;
  }

  static bool is_firing(ByteView payload) { return as_text(payload).starts_with("f"); }
  /// Returns the number of the message of a schedule: its payload has the settings, and its id the time.
  static std::optional<std::uint64_t> firing_in(const AttributesView& attributes, ByteView payload) {
    const std::string_view text = as_text(payload);
    std::uint64_t settings = 0;
    std::from_chars(text.data() + 1, text.data() + text.size(), settings);
    const std::string id(attributes.id());
    const auto slash = id.rfind('/');
    if (slash == std::string::npos) return std::nullopt;
    const auto minute = minute_of(id.substr(slash + 1));
    return minute ? std::optional(settings << version_shift | *minute) : std::nullopt;
  }
  /// Returns a minute since 1970 as the text of a moment in UTC.
  static std::string text_of_minute(std::uint64_t minute) {
    const std::chrono::sys_time<std::chrono::minutes> time{std::chrono::minutes(minute)};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const auto of_day = static_cast<int>((time - day).count());
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:00Z", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), of_day / 60,
                  of_day % 60);
    return text.data();
  }
  /// Returns the minute since 1970 of such a text, or nothing if it is none.
  static std::optional<std::uint64_t> minute_of(const std::string& text) {
    int year = 0, hour = 0, minute = 0;
    unsigned month = 0, day = 0;
    if (std::sscanf(text.c_str(), "%d-%u-%uT%d:%d:", &year, &month, &day, &hour, &minute) != 5)
      return std::nullopt;
    const std::chrono::sys_days date =
        std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day);
    const auto found = static_cast<std::uint64_t>(
        (date + std::chrono::hours(hour) + std::chrono::minutes(minute)).time_since_epoch().count());
    return text == text_of_minute(found) ? std::optional(found) : std::nullopt;
  }

  /// Returns the number that the payload has.
  [[nodiscard]] std::uint64_t base() const { return number & ~without_ttl_bit; }
  /// Returns the message without its time to live.
  [[nodiscard]] Content without_ttl() const { return {ttl_ms() == 0 ? number : number | without_ttl_bit}; }
  /// Returns the number of the message in a record, or nothing if it is none of these.
  static std::optional<std::uint64_t> number_in(const AttributesView& attributes, ByteView payload) {
    const auto found = is_firing(payload) ? firing_in(attributes, payload) : number_in(as_text(payload));
    if (!found) return std::nullopt;
    for (const Header each : attributes.headers())
      if (each.name == "lightq-ttl-ms") return found;
    return Content{*found}.without_ttl().number;
  }

  /// Returns the difference between a record and this message, or nothing. Headers of deaths are skipped.
  [[nodiscard]] std::string difference(const AttributesView& attributes, ByteView bytes) const {
    if (as_text(bytes) != payload()) return "another payload";
    const std::int64_t time_us = is_firing() ? static_cast<std::int64_t>(minute()) * 60'000'000 : 0;
    if (attributes.time().us != time_us) return "another time";
    if (attributes.key() != key()) return "another key";
    std::string found_id;
    std::string found_header;
    std::string found_ttl = "0";
    for (const Header each : attributes.headers()) {
      if (each.name == "lightq-id")
        found_id = each.value;
      else if (each.name == "number")
        found_header = each.value;
      else if (each.name == "lightq-ttl-ms")
        found_ttl = each.value;
      else if (!each.name.starts_with("lightq-dead-"))
        return "an unknown header";
    }
    if (found_id != id()) return "another id";
    if (found_ttl != std::to_string(ttl_ms())) return "another time to live";
    return found_header == header() ? std::string() : "another header";
  }
};

}  // namespace lightq::model
