/// Answers a mistyped command with the one that was probably meant. Layer: cli.
#include "client/suggestion.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lightq::cli {
namespace {

/// Other people's words for our commands.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> synonyms = {{
    {"publish", "produce"},   {"send", "produce"},    {"push", "produce"},  {"write", "produce"},
    {"subscribe", "consume"}, {"receive", "consume"}, {"pull", "consume"},  {"read", "consume"},
    {"listen", "consume"},    {"server", "broker"},   {"start", "broker"},  {"serve", "broker"},
    {"topics", "topic"},      {"info", "stats"},      {"ls", "list"},       {"rm", "delete"},
    {"remove", "delete"},     {"show", "info"},       {"describe", "info"}, {"add", "create"},
    {"new", "create"},        {"make", "create"},
}};

/// Edits (insertions, deletions, replacements, swaps of neighbours) between two words.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view typed, std::span<const std::string_view> known) {
  constexpr std::size_t typed_bytes_max = 32;
  if (typed.size() > typed_bytes_max) return std::nullopt;
  for (const auto& [word, meant] : synonyms) {
    if (word == typed && std::ranges::find(known, meant) != known.end()) return std::string(meant);
  }
  const auto begins = [&](std::string_view word) { return typed.size() >= 3 && word.starts_with(typed); };
  if (std::ranges::count_if(known, begins) == 1) return std::string(*std::ranges::find_if(known, begins));
  std::optional<std::string> best;
  std::size_t fewest = typed.size() <= 4 ? 2 : 3;  // as many edits, and it is another word
  for (const std::string_view word : known) {
    const std::size_t edits = edit_distance(typed, word);
    if (edits >= fewest) continue;
    fewest = edits;
    best = std::string(word);
  }
  return best;
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

}  // namespace lightq::cli
