/// Writes the manual pages of the commands. Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "client/help/command_entry.hpp"

namespace lightq::cli {

/// A manual page: the name of its file, and its text in the language of man(7).
struct ManualPage {
  std::string file;  ///< for example `lightq-topic.1`
  std::string text;
};

/// Returns a page for the program, and one for each of its commands, with the commands under it.
std::vector<ManualPage> manual_pages(const CommandEntry& program);

}  // namespace lightq::cli
