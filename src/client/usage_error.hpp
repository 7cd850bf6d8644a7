/// Formats errors about the command line. Layer: cli.
#pragma once

#include <string>

namespace CLI {
class ParseError;
}

namespace lightq::cli {

/// Returns the parser's error text. Of unknown arguments it repeats only the names of flags. Any other word
/// may be a secret that somebody tried to pass.
std::string without_values(const CLI::ParseError& error);

}  // namespace lightq::cli
