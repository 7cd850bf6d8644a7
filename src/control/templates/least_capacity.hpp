/// Refuses capacities of topics in which no message fits. Layer: control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/error.hpp>
#include <lightq/protocol/least_capacity.hpp>

namespace lightq::broker {

/// Returns the reason why a topic with this capacity can store no message of one byte; nothing if it can. 0
/// means no limit. Errors: invalid_request.
inline std::optional<Error> objection_to_capacity(std::uint64_t capacity_bytes) {
  constexpr std::uint64_t least = protocol::least_capacity_bytes;
  if (capacity_bytes == 0 || capacity_bytes >= least) return std::nullopt;
  return Error{ErrorCode::invalid_request, "capacity_bytes: no message fits into " +
                                               std::to_string(capacity_bytes) + " bytes; the least is " +
                                               std::to_string(least) + ", and 0 means no limit"};
}

}  // namespace lightq::broker
