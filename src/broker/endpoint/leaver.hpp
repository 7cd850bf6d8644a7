/// Who wants an endpoint closed. Layer: endpoint.
#pragma once

#include <cstdint>

#include "broker/endpoint/endpoint_record.hpp"

namespace lightq::broker {

/// By the rights on the endpoint's topic. Plain data.
struct Leaver {
  std::uint64_t user = 0;  ///< who that is, as EndpointRecord::user
  bool manages = false;    ///< may close everybody's
  bool produces = false;   ///< may leave the endpoint that all producers share

  [[nodiscard]] bool may_leave(const EndpointRecord& endpoint) const {
    if (endpoint.role == EndpointRole::produce) return produces;
    return manages || (user != 0 && endpoint.user == user);
  }
  friend bool operator==(const Leaver&, const Leaver&) = default;
};

}  // namespace lightq::broker
