/// LightQ's version, as numbers and as text. Layer: base.
#pragma once

#include <string_view>

namespace lightq::inline v1 {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
/// `major.minor.patch`. The broker sends it in answer to `version` and writes it to `broker.json`.
inline constexpr std::string_view version_text = "0.1.0";

}  // namespace lightq::inline v1
