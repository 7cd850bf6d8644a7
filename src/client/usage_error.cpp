/// Layer: cli.
#include "client/usage_error.hpp"

#include <sstream>

#include "client/command_options.hpp"

namespace lightq::cli {

std::string without_values(const CLI::ParseError& error, std::string_view command) {
  const std::string text = error.what();
  const std::size_t list = text.find(": ");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || list == std::string::npos) return text;
  // The parser tells them in no order of ours: beside a flag, any other word may be its value.
  std::istringstream words(text.substr(list + 2));
  std::string told;
  std::string others;
  const bool behind_name = command.starts_with("user add") || command.starts_with("user password");
  bool secret = behind_name;
  for (std::string word; words >> word;) {
    const bool is_flag = word.starts_with('-');
    const std::string name = is_flag ? word.substr(0, word.find('=')) : word;
    secret = secret || (is_flag && name.find("password") != std::string::npos);
    (is_flag ? told : others) += ' ' + name;
  }
  if (told.empty()) told = behind_name ? " a word that is not repeated" : others;
  told = text.substr(0, list + 1) + told;
  return secret ? told + "\n  passwords come from a file (see --help), a prompt, or LIGHTQ_PASSWORD" : told;
}

}  // namespace lightq::cli
