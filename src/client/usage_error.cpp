/// Layer: cli.
#include "client/usage_error.hpp"

#include <sstream>

#include <CLI/CLI.hpp>

namespace lightq::cli {

std::string without_values(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::size_t list = text.find(": ");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || list == std::string::npos) return text;
  std::istringstream words(text.substr(list + 2));
  std::string told = text.substr(0, list + 1);
  bool behind_flag = false;
  bool secret = false;
  for (std::string word; words >> word;) {
    const bool flag = word.starts_with('-');
    behind_flag = behind_flag || flag;
    if (!flag && behind_flag) continue;
    const std::string name = flag ? word.substr(0, word.find('=')) : word;
    secret = secret || name.find("password") != std::string::npos;
    told += ' ' + name;
  }
  return secret ? told + "\n  passwords come from a file (see --help), a prompt, or LIGHTQ_PASSWORD" : told;
}

}  // namespace lightq::cli
