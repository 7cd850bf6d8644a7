/// The scripts by which shells complete the commands. Layer: cli.
#pragma once

#include <string>
#include <string_view>

namespace lightq::cli {

/// Returns the script for `bash`, `zsh` or `fish`. It asks `lightq completion words` for each completion, so
/// it has no words of its own. Requires: one of these shells.
std::string shell_script(std::string_view shell);

}  // namespace lightq::cli
