/// Patterns of topics' and groups' names, as users' rights name them. docs/protocol.md, "Users". Layer:
/// protocol.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::inline v1::protocol {

/// Whether a text is a pattern: what a topic's name may be, or may be with characters in place of each `*`.
constexpr bool is_topic_pattern(std::string_view text) {
  if (text.empty() || text.size() > limits::topic_pattern_bytes_max) return false;
  if (text.front() == '.' || text.front() == '-') return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool other = (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '*';
    if (!letter && !other) return false;
  }
  return true;
}

/// What a right is on: `TOPIC`, everything of the topics that fit, or `TOPIC:GROUP`, those of their groups
/// that fit. Both parts are patterns.
struct RightPattern {
  std::string_view topic;
  std::optional<std::string_view> group;
};

/// The two parts of a text. Whether each is a pattern, `is_right_pattern` says.
constexpr RightPattern split_right_pattern(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// Whether a text is a pattern of topics, or one of topics, a colon, and one of groups.
constexpr bool is_right_pattern(std::string_view text) {
  if (text.size() > limits::topic_pattern_bytes_max) return false;
  const RightPattern parts = split_right_pattern(text);
  return is_topic_pattern(parts.topic) && (!parts.group || is_topic_pattern(*parts.group));
}

/// Whether a topic's name fits a pattern: `*` stands for any characters, also for none. At most as many steps
/// as the product of the two lengths.
constexpr bool fits_pattern(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;  // the last one seen, and what it stands for as far as known
  std::size_t star_ends = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      star_ends = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[at]) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++star_ends;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

}  // namespace lightq::inline v1::protocol
