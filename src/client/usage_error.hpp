/// What is said of a command line that cannot be understood. Layer: cli.
#pragma once

#include <string>

namespace CLI {
class ParseError;
}

namespace lightq::cli {

/// What the parser says. Of arguments that it does not know, flags' names alone: any other word may be a
/// secret, given in a way that there is none for.
std::string without_values(const CLI::ParseError& error);

}  // namespace lightq::cli
