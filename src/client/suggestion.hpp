/// Suggests the intended command for a mistyped one. Layer: cli.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lightq::cli {

/// Returns the word of `known` that is nearest to `typed` or a synonym of it; nothing if none is near.
std::optional<std::string> nearest_word(std::string_view typed, std::span<const std::string_view> known);

/// Returns today's spelling of a command line of LightQ 2015 (`producer 10000000 100`, `consumer queue zmq
/// pull`); nothing if `arguments` is none of those. `arguments` excludes the program's name.
std::optional<std::string> modern_spelling(std::span<const std::string> arguments);

}  // namespace lightq::cli
