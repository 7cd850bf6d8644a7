/// Answers a mistyped command with the one that was probably meant. Layer: cli.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lightq::cli {

/// The word of `known` that is nearest to `typed`, or that others call so; nothing when none is near.
std::optional<std::string> nearest_word(std::string_view typed, std::span<const std::string_view> known);

/// The command line that replaces one of LightQ 2015's (`producer 10000000 100`, `consumer queue zmq pull`);
/// nothing if `arguments` is none of those. `arguments`: what follows the program's name.
std::optional<std::string> modern_spelling(std::span<const std::string> arguments);

}  // namespace lightq::cli
