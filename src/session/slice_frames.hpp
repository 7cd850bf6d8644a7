/// Encodes and sends frames that deliver messages. Layer: session.
#pragma once

#include <cstdint>

#include "delivery/session_consumer.hpp"
#include "session/session_output.hpp"

namespace lightq::broker {

/// The fields of a `deliver` frame other than its messages.
struct SliceAddress {
  std::uint32_t channel = 0;
  std::uint32_t request = 0;
  std::uint32_t delivery = 0;
  std::uint32_t hand_out = 0;
  std::uint64_t lost = 0;
  bool expired = false;  ///< the frames say so, if the client knows that
};

/// Delivers the slice in as few frames as the client's limit allows; the first frame reports `lost`.
/// Returns the number of records delivered. It is smaller than the slice's count if the next record is too
/// long for any frame.
/// If there is no memory to decompress the slice, the session ends, as it does without memory for its output.
std::uint32_t deliver_slice(FrameOutput& output, const BatchSlice& slice, const SliceAddress& address);

}  // namespace lightq::broker
