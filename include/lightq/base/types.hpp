/// Strong types for the nouns that would otherwise be bare integers and strings. Layer: base.
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

/// The bytes of a text, without a copy; valid as long as the text.
inline ByteView as_byte_view(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// Bytes seen as text, without a copy; valid as long as the bytes.
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The index of a message in its topic: 0 for the first ever appended, then counting without gaps.
struct Offset {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Offset, Offset) = default;
  friend constexpr Offset operator+(Offset offset, std::uint64_t count) { return {offset.value + count}; }
  /// Messages from `from` up to, not including, `to`; requires from <= to.
  friend constexpr std::uint64_t distance(Offset from, Offset to) { return to.value - from.value; }
};

/// Messages [begin, end).
struct OffsetRange {
  Offset begin;
  Offset end;
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

/// Microseconds since 1970-01-01 UTC.
struct Timestamp {
  std::int64_t us = 0;
  friend constexpr auto operator<=>(Timestamp, Timestamp) = default;
};

/// Identifies a topic for its whole life; never used again after a delete. Names its directory.
struct TopicId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(TopicId, TopicId) = default;
};

/// A topic's name: `[A-Za-z0-9._-]{1,128}`, not beginning with a dot or a dash. Also the rule for group
/// names.
class TopicName {
 public:
  /// The name, or nothing if the text breaks the rule above.
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
