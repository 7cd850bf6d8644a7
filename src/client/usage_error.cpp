/// Formats errors about the command line without repeating possible secrets. Layer: cli.
#include "client/usage_error.hpp"

#include <sstream>

#include "client/command_options.hpp"

namespace lightq::cli {

namespace {

/// Returns the name of a flag, without a value that follows directly, as in `-pVALUE`.
std::string name_of_flag(const std::string& word) {
  constexpr std::size_t short_flag_bytes = 2;
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, short_flag_bytes);
}

}  // namespace

std::string without_values(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::size_t list = text.find(": ");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || list == std::string::npos) return text;
  // The parser lists them in an unknown order. Any other word beside a flag may be its value.
  std::istringstream words(text.substr(list + 2));
  std::string told;
  bool others = false;
  for (std::string word; words >> word;) {
    if (word.starts_with('-')) {
      told += ' ' + name_of_flag(word);
    } else {
      others = true;
    }
  }
  if (told.empty()) told = " an argument that is not shown";
  const bool secret = others || told.find("password") != std::string::npos;
  told = text.substr(0, list + 1) + told;
  return secret ? told + "\n  passwords come from a file (see --help), a prompt, or LIGHTQ_PASSWORD" : told;
}

}  // namespace lightq::cli
