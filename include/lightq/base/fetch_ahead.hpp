/// Asking the processor for memory before it is needed, so that what many objects keep in many places comes
/// while others are at work: group prefetching (Chen, Ailamaki, Gibbons, Mowry: "Improving Hash Join
/// Performance through Prefetching", 2004). Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lightq::inline v1 {

/// Whoever has something to fetch ahead is asked in steps: each asks for what the step before has brought the
/// addresses of. The same step is done for several objects before the next one, which then finds what it
/// needs.
inline constexpr unsigned fetch_ahead_steps = 6;

/// Asks for the bytes from `object` on, to be written, too. Never waits; any address will do.
inline void fetch_ahead(const void* object, std::size_t bytes) {
  constexpr std::uintptr_t line = 64;
  const auto begin = reinterpret_cast<std::uintptr_t>(object);
  for (std::uintptr_t at = begin & ~(line - 1); at < begin + bytes; at += line)
    __builtin_prefetch(reinterpret_cast<const void*>(at), 1);
}

template <typename Object>
void fetch_ahead(const Object* object) {
  fetch_ahead(object, sizeof(Object));
}

}  // namespace lightq::inline v1
