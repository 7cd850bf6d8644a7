/// Overwrites what copying secrets has left in the processor's registers. Layer: base.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace lightq::inline v1 {

/// The C library copies through wide registers, which keep what was copied last, and nothing else uses some
/// of them: from there it comes onto stacks, also those of threads that are started meanwhile, whenever
/// something saves all registers. So harmless bytes are copied here, of each length that it has a way of its
/// own for. Any thread; before wipe_stack.
[[gnu::noinline]] inline void wipe_registers() {
  static constexpr std::size_t longest = 2048;
  static constexpr std::array<std::byte, longest> harmless{};
  std::array<std::byte, longest> to;
  void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;  // not to be left out, or replaced
  for (std::size_t length = 1; length <= longest; length *= 2) copy(to.data(), harmless.data(), length);
  for (std::size_t length = 24; length <= longest; length *= 2) copy(to.data(), harmless.data(), length);
}

}  // namespace lightq::inline v1
