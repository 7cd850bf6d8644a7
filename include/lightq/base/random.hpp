/// The system's source of randomness: getrandom(2). Layer: base.
#pragma once

#include <sys/random.h>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <span>

namespace lightq::inline v1 {

/// For keys, too. `to`: at most 256 bytes, which getrandom gives whole or not at all; a system that has none
/// ends the process. Any thread.
inline void fill_random(std::span<std::byte> to) {
  assert(to.size() <= 256);
  if (::getrandom(to.data(), to.size(), 0) != static_cast<ssize_t>(to.size())) std::abort();
}

/// Any value of the type is as likely as any other. Any thread.
template <std::unsigned_integral Number>
[[nodiscard]] Number random_number() {
  Number number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace lightq::inline v1
