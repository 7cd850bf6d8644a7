/// A new password, from wherever it may come but the command line. Layer: cli.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// The first line of a file, without its end; what follows in a pipe is left there. `variable`: what would
/// hold the password itself, for errors, which do not repeat what may be one. Errors: invalid_argument (other
/// users may read it, or there is none). The caller wipes it.
Result<std::string> read_password(const std::string& path, const std::string& variable);

/// The first line of `file` if one is named, else what LIGHTQ_NEW_PASSWORD has `given`, else what is typed
/// twice on the terminal without being shown, or one line of standard input where that is none. Errors:
/// invalid_argument (there is none, or the two differ). The caller wipes it.
Result<std::string> new_password(const std::string& file, std::string given);

}  // namespace lightq::cli
