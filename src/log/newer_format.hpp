/// Rules that distinguish files of a newer LightQ version from damaged ones, and the error that refuses them.
/// Layer: log. docs/log_format.md, "Newer versions".
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::log {

/// Returns the required flags: the lower 16 of 32. A version refuses a file with a required flag that it does
/// not know. The upper 16 are optional: a version ignores those that it does not know.
constexpr std::uint32_t required_flags(std::uint32_t flags) {
  return flags & 0xFFFF;
}

/// Returns the error for such a file. The text in `what` names the file and the part that is unknown.
inline Error newer_format(const std::string& what) {
  return {ErrorCode::foreign_format,
          what + ": a newer version of LightQ wrote it. Use that version; nothing was changed", 0};
}

/// Returns flags or a version as error texts show them: `0x0008`.
std::string hexadecimal(std::uint32_t value);

}  // namespace lightq::log
