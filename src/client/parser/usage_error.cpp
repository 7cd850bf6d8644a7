/// Formats errors about the command line without repeating possible secrets. Layer: cli.
#include "client/parser/usage_error.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include <lightq/base/nearest_word.hpp>

#include "client/parser/command_options.hpp"

namespace lightq::cli {

namespace {

constexpr const char* password_sources =
    "\n  passwords come from a file (see --help), a prompt, or LIGHTQ_PASSWORD";

/// Returns the name of a flag, without a value that follows directly, as in `-pVALUE`.
std::string name_of_flag(const std::string& word) {
  constexpr std::size_t short_flag_bytes = 2;
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, short_flag_bytes);
}

/// Returns the flag that is spelled nearly like an unknown one. Returns nothing for a flag that is known: it
/// stands behind `--`.
std::optional<std::string> meant_flag(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::string_view dashes = "--";
  if (!word.starts_with(dashes) || word.size() == dashes.size()) return std::nullopt;
  if (std::ranges::find(known, name_of_flag(word)) != known.end()) return std::nullopt;
  std::vector<std::string_view> names;
  for (const std::string& each : known)
    if (each.starts_with(dashes)) names.push_back(std::string_view(each).substr(dashes.size()));
  const auto near = nearest_spelling(name_of_flag(word).substr(dashes.size()), names);
  return near ? std::optional(std::string(dashes) + *near) : std::nullopt;
}

}  // namespace

std::string without_values(const CLI::ParseError& error, const std::vector<std::string>& known) {
  const std::string text = error.what();
  const std::size_t list = text.find(": ");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || list == std::string::npos) return text;
  // The parser lists them in an unknown order. Any other word beside a flag may be its value.
  std::istringstream words(text.substr(list + 2));
  std::string told;
  bool others = false;
  for (std::string word; words >> word;) {
    if (const auto meant = meant_flag(word, known)) {
      const std::string flag = name_of_flag(word);
      const bool secret = flag.find("password") != std::string::npos;
      return "there is no flag " + flag + "; did you mean " + *meant + "?" + (secret ? password_sources : "");
    }
    if (word.starts_with('-')) {
      told += ' ' + name_of_flag(word);
    } else {
      others = true;
    }
  }
  if (told.empty()) told = " an argument that is not shown";
  const bool secret = others || told.find("password") != std::string::npos;
  told = text.substr(0, list + 1) + told;
  return secret ? told + password_sources : told;
}

}  // namespace lightq::cli
