/// Identifies the user that asks to close an endpoint, and decides whether the user may. Layer: topic.
#pragma once

#include <cstdint>

#include "topic/endpoint_record.hpp"

namespace lightq::broker {

/// The sender of a `leave` command, with the user's rights on the endpoint's topic. Plain data.
struct Leaver {
  std::uint64_t user = 0;  ///< the user's number, as in EndpointRecord::user
  bool manages = false;    ///< may close the endpoints of all users
  bool produces = false;   ///< may leave the endpoint that all producers share

  /// Returns true if the user may leave this endpoint.
  [[nodiscard]] bool may_leave(const EndpointRecord& endpoint) const {
    if (endpoint.role == EndpointRole::produce) return produces;
    return manages || (user != 0 && endpoint.user == user);
  }
  friend bool operator==(const Leaver&, const Leaver&) = default;
};

}  // namespace lightq::broker
