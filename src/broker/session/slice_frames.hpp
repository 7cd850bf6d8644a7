/// Frames that deliver messages. Layer: session.
#pragma once

#include <cstdint>

#include "broker/delivery/session_consumer.hpp"
#include "broker/session/session_port.hpp"

namespace lightq::broker {

/// What a `deliver` frame says besides its messages.
struct SliceAddress {
  std::uint32_t channel = 0;
  std::uint32_t request = 0;
  std::uint32_t delivery = 0;
  std::uint64_t lost = 0;
};

/// Delivers the slice, in as few frames as the client's limit allows; `lost` is told with the first. The
/// number of records that were: fewer than there are if the next one is too long for any frame. Where there
/// is no memory to unpack it the session ends, as where there is none for its output.
std::uint32_t deliver_slice(SessionPort& port, const BatchSlice& slice, const SliceAddress& address);

}  // namespace lightq::broker
