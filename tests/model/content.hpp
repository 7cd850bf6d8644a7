/// The content of the messages that the model publishes: all of it follows from one number.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/batch.hpp>

namespace lightq::model {

/// A message as the model makes it and as consumers must receive it. A plain value.
struct Content {
  std::uint64_t number = 0;

  [[nodiscard]] std::string payload() const {
    const std::size_t bytes = base() % 11 == 0 ? 300 + base() % 700 : base() % 60;
    return "m" + std::to_string(base()) + ":" + std::string(bytes, 'x');
  }
  [[nodiscard]] std::string key() const {
    return base() % 3 == 0 ? "key " + std::to_string(base() % 7) : std::string();
  }
  [[nodiscard]] std::string id() const { return base() % 5 == 0 ? "id " + std::to_string(base()) : ""; }
  /// The time to live; 0: none. Messages from `ttl_from` on may have one.
  static constexpr std::uint64_t ttl_from = 1'000'000;
  /// Added to the number of a message that has lost its time to live, because a letter was published anew.
  static constexpr std::uint64_t without_ttl_bit = std::uint64_t{1} << 62;
  [[nodiscard]] std::int64_t ttl_ms() const {
    if (number < ttl_from || (number & without_ttl_bit) != 0 || number % 6 != 0) return 0;
    return static_cast<std::int64_t>(1 + number * 7919 % (number % 12 == 0 ? 600 : 20'000));
  }
  [[nodiscard]] std::string header() const { return base() % 4 == 0 ? std::to_string(base()) : ""; }

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

  /// Returns the number that the payload has.
  [[nodiscard]] std::uint64_t base() const { return number & ~without_ttl_bit; }
  /// Returns the message without its time to live.
  [[nodiscard]] Content without_ttl() const { return {ttl_ms() == 0 ? number : number | without_ttl_bit}; }
  /// Returns the number of the message in a record, or nothing if it is none of these.
  static std::optional<std::uint64_t> number_in(const AttributesView& attributes, ByteView payload) {
    const auto found = number_in(as_text(payload));
    if (!found) return std::nullopt;
    for (const Header each : attributes.headers())
      if (each.name == "lightq-ttl-ms") return found;
    return Content{*found}.without_ttl().number;
  }

  /// Returns the difference between a record and this message, or nothing. Headers of deaths are skipped.
  [[nodiscard]] std::string difference(const AttributesView& attributes, ByteView bytes) const {
    if (as_text(bytes) != payload()) return "another payload";
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
