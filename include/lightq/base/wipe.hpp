/// Overwrites secrets that are needed no more. Layer: base.
#pragma once

#include <string.h>

#include <array>
#include <cstddef>
#include <string>

namespace lightq::inline v1 {

/// Overwrites a text's bytes, those behind its end too, in a way that a compiler must not leave out, and
/// empties it. Any thread that may change the text.
inline void wipe_text(std::string& text) {
  text.resize(text.capacity());
  explicit_bzero(text.data(), text.size());
  text.clear();
}

/// Overwrites what the functions that were called before have left on the calling thread's stack, 16 KiB
/// deep: libraries keep no account of the copies they make there.
[[gnu::noinline]] inline void wipe_stack() {
  std::array<std::byte, 16 * 1024> left;
  explicit_bzero(left.data(), left.size());
}

}  // namespace lightq::inline v1
