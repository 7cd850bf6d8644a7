/// Suggests the intended command for a mistyped one. Layer: cli.
#include "client/text/suggestion.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <lightq/base/nearest_word.hpp>

namespace lightq::cli {
namespace {

/// Words of other systems for these commands.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> synonyms = {{
    {"publish", "produce"},   {"send", "produce"},    {"push", "produce"},  {"write", "produce"},
    {"subscribe", "consume"}, {"receive", "consume"}, {"pull", "consume"},  {"read", "consume"},
    {"listen", "consume"},    {"server", "broker"},   {"start", "broker"},  {"serve", "broker"},
    {"topics", "topic"},      {"info", "stats"},      {"ls", "list"},       {"rm", "delete"},
    {"remove", "delete"},     {"show", "info"},       {"describe", "info"}, {"add", "create"},
    {"new", "create"},        {"make", "create"},
}};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view typed, std::span<const std::string_view> known) {
  for (const auto& [word, meant] : synonyms) {
    if (word == typed && std::ranges::find(known, meant) != known.end()) return std::string(meant);
  }
  return nearest_spelling(typed, known);
}

std::optional<std::string> modern_spelling(std::span<const std::string> arguments) {
  if (arguments.empty()) return std::nullopt;
  if (arguments[0] == "producer") {
    std::string command = "lightq produce test";
    if (arguments.size() > 1 && is_number(arguments[1])) command += " -n " + arguments[1];
    if (arguments.size() > 2 && is_number(arguments[2])) command += " --size " + arguments[2];
    return command;
  }
  if (arguments[0] == "consumer") {
    const bool sub = std::ranges::find(arguments, "sub") != arguments.end();
    return std::string("lightq consume test --mode ") + (sub ? "sub" : "pull");
  }
  return std::nullopt;
}

std::optional<std::string> misspelling(std::span<const std::string> arguments,
                                       std::span<const std::string_view> commands,
                                       std::span<const CommandFamily> families) {
  if (arguments.empty()) return std::nullopt;
  const std::string& first = arguments[0];
  if (const auto modern = modern_spelling(arguments))
    return "'" + first + "' is a command of LightQ of 2015; the command is now:\n  " + *modern;
  const auto unknown = [](const std::string& word, std::span<const std::string_view> known,
                          const std::string& before) -> std::optional<std::string> {
    if (word.starts_with('-') || std::ranges::find(known, word) != known.end()) return std::nullopt;
    const auto near = nearest_word(word, known);
    const std::string help = "see  lightq " + before + "--help";
    return "there is no command '" + before + word + "'; " +
           (near ? "did you mean '" + before + *near + "'?" : help);
  };
  for (const CommandFamily& family : families) {
    if ((family.name != "topic" && family.name != "log") || first == "info") continue;
    if (std::ranges::find(family.words, first) != family.words.end())
      return "there is no command '" + first + "'; did you mean '" + std::string(family.name) + " " + first +
             "'?";
  }
  if (auto fault = unknown(first, commands, "")) return fault;
  if (arguments.size() < 2) return std::nullopt;
  const auto family = std::ranges::find(families, first, &CommandFamily::name);
  if (family == families.end()) return std::nullopt;
  return unknown(arguments[1], family->words, first + " ");
}

std::string command_words(std::span<const std::string> arguments, std::span<const CommandFamily> families) {
  if (arguments.empty() || arguments[0].starts_with('-')) return "";
  const bool two = std::ranges::find(families, arguments[0], &CommandFamily::name) != families.end() &&
                   arguments.size() > 1 && !arguments[1].starts_with('-');
  return arguments[0] + " " + (two ? arguments[1] + " " : "");
}

}  // namespace lightq::cli
