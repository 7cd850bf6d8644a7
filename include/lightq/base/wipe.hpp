/// Overwrites secrets that are no longer needed. Layer: base.
#pragma once

#include <string.h>

#include <cstddef>
#include <span>
#include <string>

namespace lightq::inline v1 {

/// Overwrites `bytes`, for example a key. The compiler cannot omit this. Thread: any that may change them.
inline void wipe_bytes(std::span<std::byte> bytes) noexcept {
  if (!bytes.empty()) explicit_bzero(bytes.data(), bytes.size());
}

/// Overwrites all bytes of a text's memory, including those beyond its end, and empties the text. For texts
/// that become a Secret; a Secret does it by itself. Thread: any that may change the text.
inline void wipe_text(std::string& text) noexcept {
  text.resize(text.capacity());
  explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace lightq::inline v1
