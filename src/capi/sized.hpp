/// Reads and writes structs of C that begin with their size, and may be of another version. Layer: capi.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <lightq/lightq.h>
#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>

namespace lightq::capi {

/// No struct of any version is longer.
inline constexpr std::size_t struct_bytes_max = 4096;

// These return the bytes of a struct in the first version: up to the end of its last field then. A version
// that appends fields leaves them as they are, so that older programs stay accepted.
constexpr std::size_t first_bytes(const lightq_options*) {
  return offsetof(lightq_options, connect_timeout_ms) + sizeof(lightq_options::connect_timeout_ms);
}
constexpr std::size_t first_bytes(const lightq_interest*) {
  return offsetof(lightq_interest, reserved) + sizeof(lightq_interest::reserved);
}
constexpr std::size_t first_bytes(const lightq_identity*) {
  return offsetof(lightq_identity, secret) + sizeof(lightq_identity::secret);
}
constexpr std::size_t first_bytes(const lightq_producer_options*) {
  return offsetof(lightq_producer_options, backoff_max_ms) + sizeof(lightq_producer_options::backoff_max_ms);
}
constexpr std::size_t first_bytes(const lightq_attributes*) {
  return offsetof(lightq_attributes, ttl_ms) + sizeof(lightq_attributes::ttl_ms);
}
constexpr std::size_t first_bytes(const lightq_report*) {
  return offsetof(lightq_report, delayed_first) + sizeof(lightq_report::delayed_first);
}
constexpr std::size_t first_bytes(const lightq_producer_stats*) {
  return offsetof(lightq_producer_stats, opens) + sizeof(lightq_producer_stats::opens);
}
constexpr std::size_t first_bytes(const lightq_consumer_options*) {
  return offsetof(lightq_consumer_options, frame_bytes_max) +
         sizeof(lightq_consumer_options::frame_bytes_max);
}
constexpr std::size_t first_bytes(const lightq_message*) {
  return offsetof(lightq_message, reserved) + sizeof(lightq_message::reserved);
}
constexpr std::size_t first_bytes(const lightq_consumer_stats*) {
  return offsetof(lightq_consumer_stats, unacknowledged) + sizeof(lightq_consumer_stats::unacknowledged);
}
constexpr std::size_t first_bytes(const lightq_reader_options*) {
  return offsetof(lightq_reader_options, frame_bytes_max) + sizeof(lightq_reader_options::frame_bytes_max);
}

/// Returns true if `given` has the size of a struct of this version, an earlier or a later one.
template <typename Struct>
bool is_sized(const Struct* given) {
  return given != nullptr && given->size >= first_bytes(given) && given->size <= struct_bytes_max;
}

/// Returns a copy of `given`; a struct of zeros if it is null. Fields that an earlier version does not have
/// are 0. Errors: invalid_argument: the size is that of no version. not_supported: a field that this version
/// does not know is not zero.
template <typename Struct>
Result<Struct> read_sized(const Struct* given, const char* name) {
  Struct taken{};
  taken.size = sizeof taken;
  if (given == nullptr) return taken;
  if (!is_sized(given))
    return Error{ErrorCode::invalid_argument, std::string(name) + ".size is not the size of the struct"};
  const std::size_t size = given->size;
  const std::size_t known = std::min(size, sizeof taken);
  std::memcpy(&taken, given, known);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (!std::all_of(bytes + known, bytes + size, [](unsigned char byte) { return byte == 0; }))
    return Error{ErrorCode::not_supported, std::string(name) + " has fields that this library does not know"};
  return taken;
}

/// Fills `to` with `write(struct)`, which leaves `size` as it is. A struct of an earlier version gets only
/// the fields that it has. Requires: is_sized(&to).
template <typename Struct, typename Write>
void write_sized(Struct& to, const Write& write) {
  if (to.size >= sizeof to) [[likely]] {
    write(to);
    return;
  }
  Struct whole{};
  std::memcpy(&whole, &to, to.size);
  write(whole);
  std::memcpy(&to, &whole, whole.size);
}

}  // namespace lightq::capi
