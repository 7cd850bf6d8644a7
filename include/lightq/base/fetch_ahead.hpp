/// Prefetches memory for several objects, so that the data of one arrives while others are being processed.
/// This is group prefetching (Chen, Ailamaki, Gibbons, Mowry: "Improving Hash Join Performance through
/// Prefetching", 2004). Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lightq::inline v1 {

/// The number of prefetch steps of an object. Each step prefetches the memory to which the memory of the step
/// before points. The caller runs one step for several objects before it runs the next. So the addresses that
/// the next step needs are in the cache by then.
inline constexpr unsigned fetch_ahead_steps = 6;

/// Prefetches the bytes of an object, for reading and writing. Never waits. Any address is permitted.
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

/// Prefetches an object from its first byte up to its part `end`, which is not prefetched.
///
/// An object on the heap has fetch_ahead_hot(), which prefetches its first fields: those that each message
/// uses. A member by value has hot_end(), which returns the end of these fields as `end`. Both depend on the
/// order of fields: a field that each message uses belongs before that end, every other field behind it.
inline void fetch_ahead_up_to(const void* object, const void* end) {
  fetch_ahead(object, reinterpret_cast<std::uintptr_t>(end) - reinterpret_cast<std::uintptr_t>(object));
}

}  // namespace lightq::inline v1
