/// Text of others as a terminal may be given it. Layer: cli.
#pragma once

#include <string>
#include <string_view>

namespace lightq::cli {

/// UTF-8 without what acts on a terminal: control characters, and those that turn the direction of writing,
/// are told as `\u001b`. A backslash is doubled, so that nothing else looks like that.
std::string without_controls(std::string_view text);

}  // namespace lightq::cli
