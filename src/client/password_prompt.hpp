/// Reads a new password from any safe source, never from the command line. Layer: cli.
#pragma once

#include <string>

#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>

namespace lightq::cli {

/// Returns the first line of a file, without its line end. In a pipe, the rest stays unread. Somebody may
/// give the password itself as `path`. So errors do not show a path that may be a password, but suggest
/// `variable`, the variable for the password. Errors: invalid_argument (other users may read the file, or
/// there is none).
Result<Secret> read_password(const std::string& path, const std::string& variable);

/// Returns the new password from the first of these sources: the first line of `file` if named; `given`, the
/// value of LIGHTQ_NEW_PASSWORD; the terminal, where it is typed twice and hidden; one line of standard
/// input. Errors: invalid_argument (there is no password, or the two typed passwords differ).
Result<Secret> new_password(const std::string& file, Secret given);

}  // namespace lightq::cli
