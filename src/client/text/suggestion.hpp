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

/// A command with second words, such as `topic` with `create`.
struct CommandFamily {
  std::string_view name;
  std::span<const std::string_view> words;
};

/// Returns what to say about a command that does not exist; nothing if there is no fault. `commands`: the
/// first words.
std::optional<std::string> misspelling(std::span<const std::string> arguments,
                                       std::span<const std::string_view> commands,
                                       std::span<const CommandFamily> families);

/// Returns the words that name the command, each with a space after it.
std::string command_words(std::span<const std::string> arguments, std::span<const CommandFamily> families);

}  // namespace lightq::cli
