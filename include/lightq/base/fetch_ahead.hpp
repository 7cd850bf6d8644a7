/// Prefetches memory for several objects, so that the data of one arrives while others are being processed.
/// This is group prefetching (Chen, Ailamaki, Gibbons, Mowry: "Improving Hash Join Performance through
/// Prefetching", 2004). Layer: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace lightq::inline v1 {

/// The number of prefetch steps of an object. Each step follows pointers in memory that the step before
/// prefetched. The caller runs one step for several objects before it runs the next. So the addresses that
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

/// Prefetches an object from its first byte up to the address `end`, exclusive.
inline void fetch_ahead_up_to(const void* object, const void* end) {
  fetch_ahead(object, reinterpret_cast<std::uintptr_t>(end) - reinterpret_cast<std::uintptr_t>(object));
}

/// Prefetches the hot part of an object: its first fields, up to hot_end(). Each message uses these fields.
/// The order of fields decides: a field that each message uses belongs before that end, every other field
/// behind it. Classes check this with hot_fields_precede.
template <typename Object>
void fetch_ahead_hot(const Object& object) {
  fetch_ahead_up_to(&object, object.hot_end());
}

/// Returns true if each of the fields at `fields` (offsetof) lies before the field at `end`.
constexpr bool hot_fields_precede(std::size_t end, std::initializer_list<std::size_t> fields) {
  for (const std::size_t field : fields)
    if (field >= end) return false;
  return true;
}

}  // namespace lightq::inline v1
