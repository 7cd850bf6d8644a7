/// The table of commands, and the shells' scripts, as JSON. Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include "client/help/command_entry.hpp"

namespace lightq::cli {

/// Returns the commands under `program` with their arguments and flags in one line. `command`: only this one;
/// empty: all. Without a command of this name the list is empty.
std::string commands_document(const CommandEntry& program, std::string_view command);

/// Returns the script of a shell in one line.
std::string script_document(std::string_view shell);

}  // namespace lightq::cli
