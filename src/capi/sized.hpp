/// Reads and writes structs of C that begin with their size, and may be of another version. Layer: capi.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>

namespace lightq::capi {

/// No struct of any version is longer.
inline constexpr std::size_t struct_bytes_max = 4096;

/// Returns a copy of `given`; a struct of zeros if it is null. `Struct` begins with `size`. Errors:
/// invalid_argument: the size is that of no version. not_supported: a field that this version does not know
/// is not zero.
template <typename Struct>
Result<Struct> read_sized(const Struct* given, const char* name) {
  Struct taken{};
  taken.size = sizeof taken;
  if (given == nullptr) return taken;
  const std::size_t size = given->size;
  if (size < sizeof taken || size > struct_bytes_max)
    return Error{ErrorCode::invalid_argument, std::string(name) + ".size is not the size of the struct"};
  std::memcpy(&taken, given, sizeof taken);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (!std::all_of(bytes + sizeof taken, bytes + size, [](unsigned char byte) { return byte == 0; }))
    return Error{ErrorCode::not_supported, std::string(name) + " has fields that this library does not know"};
  return taken;
}

/// Returns true if `to` can take a struct of this version.
template <typename Struct>
bool is_sized(const Struct* to) {
  return to != nullptr && to->size >= sizeof *to && to->size <= struct_bytes_max;
}

}  // namespace lightq::capi
