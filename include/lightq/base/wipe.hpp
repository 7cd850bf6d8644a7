/// Overwrites secrets that are no longer needed. Layer: base.
#pragma once

#include <string.h>

#include <array>
#include <cstddef>
#include <string>

namespace lightq::inline v1 {

/// Overwrites all bytes of a text's memory, including those beyond its end, and empties the text. The
/// compiler cannot omit this. Thread: any that may change the text.
inline void wipe_text(std::string& text) {
  text.resize(text.capacity());
  explicit_bzero(text.data(), text.size());
  text.clear();
}

/// Overwrites 16 KiB of the calling thread's stack, to remove secrets that earlier calls left there.
/// Libraries do not record the copies that they make on the stack.
[[gnu::noinline]] inline void wipe_stack() {
  std::array<std::byte, 16 * 1024> left;
  explicit_bzero(left.data(), left.size());
}

}  // namespace lightq::inline v1
