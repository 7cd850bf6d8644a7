/// Formats errors about the command line. Layer: cli.
#pragma once

#include <string>

namespace CLI {
class ParseError;
}

namespace lightq::cli {

/// Returns the parser's error text. If it lists unknown arguments, the text repeats only the names of flags,
/// because any other word may be a secret that somebody tried to pass.
std::string without_values(const CLI::ParseError& error);

}  // namespace lightq::cli
