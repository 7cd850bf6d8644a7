/// Overwrites secrets that copying has left in the processor's registers. Layer: base.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace lightq::inline v1 {

/// Overwrites the registers through which the C library copies. These wide registers keep the bytes that were
/// copied last, and some have no other use. Any code that saves all registers would later write those bytes
/// onto a stack, also onto that of a thread started meanwhile. So this function copies harmless bytes, of
/// each length for which the library has its own method. Call it before wipe_stack. Thread: any.
[[gnu::noinline]] inline void wipe_registers() {
  static constexpr std::size_t longest = 2048;
  static constexpr std::array<std::byte, longest> harmless{};
  std::array<std::byte, longest> to;
  // Volatile, so that the compiler neither omits nor replaces the call.
  void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;
  for (std::size_t length = 1; length <= longest; length *= 2) copy(to.data(), harmless.data(), length);
  for (std::size_t length = 24; length <= longest; length *= 2) copy(to.data(), harmless.data(), length);
}

}  // namespace lightq::inline v1
