/// The system's source of randomness: getrandom(2). Layer: base.
#pragma once

#include <sys/random.h>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <span>

namespace lightq::inline v1 {

/// Fills `to` with random bytes, good enough for keys. Requires: at most 256 bytes, which getrandom returns
/// completely or not at all. Ends the process if the system has no randomness. Thread: any.
inline void fill_random(std::span<std::byte> to) {
  assert(to.size() <= 256);
  if (::getrandom(to.data(), to.size(), 0) != static_cast<ssize_t>(to.size())) std::abort();
}

/// Returns a random number; all values of the type are equally likely. Thread: any.
template <std::unsigned_integral Number>
[[nodiscard]] Number random_number() {
  Number number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace lightq::inline v1
