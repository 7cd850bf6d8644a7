/// A new password, from wherever it may come but the command line. Layer: cli.
#pragma once

#include <string>

#include <lightq/base/result.hpp>

namespace lightq::cli {

/// The first line of a file, without its end. Errors: invalid_argument.
Result<std::string> read_password(const std::string& path);

/// The first line of `file` if one is named, else LIGHTQ_NEW_PASSWORD, else what is typed twice on the
/// terminal without being shown, or one line of standard input where that is none. Errors: invalid_argument
/// (there is none, or the two differ). The caller wipes it.
Result<std::string> new_password(const std::string& file);

/// Overwrites a text's bytes, in a way that a compiler must not leave out.
void forget(std::string& secret);

}  // namespace lightq::cli
