/// What is said of a command line that cannot be understood. Layer: cli.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class ParseError;
}

namespace lightq::cli {

/// What the parser says of a command of these words. Of arguments that it does not know, flags' names alone:
/// what stands behind them may be a secret, given in a way that there is none for; so may any word behind a
/// user's name.
std::string without_values(const CLI::ParseError& error, std::string_view command);

}  // namespace lightq::cli
