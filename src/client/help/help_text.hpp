/// Prints the help of the commands. Layer: cli.
#pragma once

#include <cstddef>
#include <string>

#include "client/help/command_entry.hpp"

namespace lightq::cli {

/// Returns the help of a command in lines of at most `columns` columns. Names the flags of the connection,
/// which many commands have, only by a reference to `lightq help connection`.
std::string help_text(const CommandEntry& command, std::size_t columns);

/// Returns the help on the flags that name the broker and the user. `command`: any command that has them.
std::string connection_help(const CommandEntry& command, std::size_t columns);

}  // namespace lightq::cli
