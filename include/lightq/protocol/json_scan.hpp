/// Checks JSON from a peer before any parser reads it: size, nesting, and the command. Layer: protocol.
/// nlohmann's functions recurse as deep as a document nests, so its depth is limited before they see the
/// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/error.hpp>
#include <lightq/base/limits.hpp>

namespace lightq::inline v1::protocol::detail {

/// Returns the deepest nesting of brackets outside strings. Stops counting at `stop`. The document may be
/// malformed.
constexpr std::size_t nesting_depth(std::string_view text, std::size_t stop) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size() && deepest < stop; ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > deepest) deepest = depth;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

/// Returns the error for a document longer than `bytes_max`.
inline Error document_too_large(std::uint64_t bytes, std::size_t bytes_max) {
  return {ErrorCode::request_too_large, "the document has " + std::to_string(bytes) + " bytes; at most " +
                                            std::to_string(bytes_max) + " are accepted"};
}

/// Returns an error for a document that must not be parsed, otherwise nothing: empty, longer than
/// `bytes_max`, or nested deeper than limits::json_depth_max.
inline std::optional<Error> scan_json(std::string_view text, std::size_t bytes_max) {
  if (text.empty()) return Error{ErrorCode::invalid_json, "an empty message is not a JSON object"};
  if (text.size() > bytes_max) return document_too_large(text.size(), bytes_max);
  if (nesting_depth(text, limits::json_depth_max + 1) > limits::json_depth_max) {
    return Error{ErrorCode::invalid_json,
                 "nested deeper than " + std::to_string(limits::json_depth_max) + " levels"};
  }
  return std::nullopt;
}

/// Returns the command that a document names in its first KiB, without reading the rest. Empty if there is
/// none, or if it is not a word of small letters and underscores. The document may be malformed.
constexpr std::string_view command_in_front(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  text = text.substr(0, limits::KiB);
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if (c != '"') continue;
    const std::size_t begin = ++i;
    for (; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    if (i >= text.size()) return {};
    if (depth != 1 || text.substr(begin, i - begin) != "cmd") continue;
    std::size_t at = text.find_first_not_of(blanks, i + 1);
    if (at == text.npos || text[at] != ':') continue;  // a value, not a member's name
    at = text.find_first_not_of(blanks, at + 1);
    if (at == text.npos || text[at] != '"') return {};
    const std::size_t end = text.find_first_not_of(letters, at + 1);
    const bool whole = end != text.npos && text[end] == '"';
    return whole ? text.substr(at + 1, end - at - 1) : std::string_view();
  }
  return {};
}

}  // namespace lightq::inline v1::protocol::detail
