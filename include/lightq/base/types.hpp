/// Strong types for values that would otherwise be bare integers and strings. Layer: base.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::inline v1 {

using ByteView = std::span<const std::byte>;

/// Returns the bytes of a text, without a copy. Lifetime: valid as long as the text.
inline ByteView as_byte_view(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// Returns bytes as text, without a copy. Lifetime: valid as long as the bytes.
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The index of a message in its topic: 0 for the first message ever appended, and one more for each later
/// one, without gaps.
struct Offset {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Offset, Offset) = default;
  friend constexpr Offset operator+(Offset offset, std::uint64_t count) { return {offset.value + count}; }
  /// Returns the number of messages from `from` up to, not including, `to`. Requires: from <= to.
  friend constexpr std::uint64_t distance(Offset from, Offset to) { return to.value - from.value; }
};

/// The messages from `begin` up to, not including, `end`.
struct OffsetRange {
  Offset begin;
  Offset end;
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

/// A time in microseconds since 1970-01-01 UTC.
struct Timestamp {
  std::int64_t us = 0;
  friend constexpr auto operator<=>(Timestamp, Timestamp) = default;
};

/// Identifies a topic for its whole life, and names its directory. Never used again after the topic was
/// deleted.
struct TopicId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(TopicId, TopicId) = default;
};

/// A topic's name: `[A-Za-z0-9._-]{1,128}`, not beginning with a dot or a dash. Group names follow the same
/// rule.
class TopicName {
 public:
  /// Returns the name, or nothing if the text breaks the rule above.
  static std::optional<TopicName> parse(std::string_view text) {
    if (text.empty() || text.size() > limits::topic_name_bytes_max) return std::nullopt;
    if (text.front() == '.' || text.front() == '-') return std::nullopt;
    for (const char c : text) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      const bool digit = c >= '0' && c <= '9';
      if (!letter && !digit && c != '.' && c != '_' && c != '-') return std::nullopt;
    }
    return TopicName(std::string(text));
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  friend auto operator<=>(const TopicName&, const TopicName&) = default;

 private:
  explicit TopicName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace lightq::inline v1
