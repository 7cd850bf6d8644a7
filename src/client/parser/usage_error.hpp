/// Formats errors about the command line. Layer: cli.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class ParseError;
}

namespace lightq::cli {

/// Returns the parser's error text. If it lists unknown arguments, the text repeats only the names of flags,
/// because any other word may be a secret that somebody tried to pass. For an unknown flag, suggests the one
/// of `known` that is spelled nearly like it.
std::string without_values(const CLI::ParseError& error, const std::vector<std::string>& known);

}  // namespace lightq::cli
