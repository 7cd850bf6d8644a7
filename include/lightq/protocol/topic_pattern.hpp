/// Patterns of topic and group names in users' grants. docs/protocol.md, "Users". Layer: protocol.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::inline v1::protocol {

/// Returns true if `text` is a pattern: a possible topic name, or one in which `*` replaces some characters.
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

/// The target of a grant. `TOPIC` means everything of the matching topics; `TOPIC:GROUP` means the matching
/// groups of these topics. Both parts are patterns.
struct RightPattern {
  std::string_view topic;
  std::optional<std::string_view> group;
};

/// Splits a text at its first colon. Does not check the parts; `is_right_pattern` does.
constexpr RightPattern split_right_pattern(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// Returns true if `text` is a pattern of topics, or a pattern of topics, a colon and a pattern of groups.
constexpr bool is_right_pattern(std::string_view text) {
  if (text.size() > limits::topic_pattern_bytes_max) return false;
  const RightPattern parts = split_right_pattern(text);
  return is_topic_pattern(parts.topic) && (!parts.group || is_topic_pattern(*parts.group));
}

/// Returns true if a name matches a pattern, in which `*` stands for any characters, or none. Takes at most
/// as many steps as the product of the two lengths.
constexpr bool fits_pattern(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;  // the last star seen, and the end of the characters it matches
                                              // so far
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
