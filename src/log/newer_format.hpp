/// What a newer version of LightQ has written: how it is told from damage, and how it is refused. Layer: log.
/// docs/log_format.md, "Newer versions".
#pragma once

#include <cstdint>
#include <string>

#include <lightq/base/result.hpp>

namespace lightq::log {

/// Of 32 flags the lower half is required: who does not know one of them refuses the file. The upper half is
/// optional: who does not know one ignores it.
constexpr std::uint32_t required_flags(std::uint32_t flags) {
  return flags & 0xFFFF;
}

/// The error for such a file. `what` names it, and what in it is not known.
inline Error newer_format(const std::string& what) {
  return {ErrorCode::foreign_format,
          what + ": a newer version of LightQ wrote it. Use that version; nothing of it was changed", 0};
}

/// Flags or a version, as an error shows them: `0x0008`.
std::string hexadecimal(std::uint32_t value);

}  // namespace lightq::log
