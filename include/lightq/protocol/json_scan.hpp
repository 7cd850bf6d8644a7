/// A look at foreign JSON before any parser sees it: size and nesting. Layer: protocol.
/// nlohmann's own functions recurse as deep as a document nests, so depth is bounded on the bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <lightq/base/error.hpp>
#include <lightq/base/limits.hpp>

namespace lightq::inline v1::protocol::detail {

/// The deepest nesting of brackets outside strings. Needs no well-formed document; stops counting at `stop`.
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

/// Why a document is not even parsed, or nothing: empty, longer than `bytes_max`, or nested deeper than
/// limits::json_depth_max.
inline std::optional<Error> scan_json(std::string_view text, std::size_t bytes_max) {
  if (text.empty()) return Error{ErrorCode::invalid_json, "an empty message is not a JSON object"};
  if (text.size() > bytes_max) {
    return Error{ErrorCode::request_too_large, "the document has " + std::to_string(text.size()) +
                                                   " bytes, at most " + std::to_string(bytes_max) +
                                                   " are accepted"};
  }
  if (nesting_depth(text, limits::json_depth_max + 1) > limits::json_depth_max) {
    return Error{ErrorCode::invalid_json,
                 "nested deeper than " + std::to_string(limits::json_depth_max) + " levels"};
  }
  return std::nullopt;
}

}  // namespace lightq::inline v1::protocol::detail
