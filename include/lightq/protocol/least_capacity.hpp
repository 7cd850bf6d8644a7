/// The least capacity of a topic with files. Layer: protocol.
#pragma once

#include <cstdint>

#include <lightq/base/batch.hpp>

namespace lightq::inline v1::protocol {

/// The least `capacity_bytes` but 0, which means no limit: a batch of one message with a byte of payload.
inline constexpr std::uint64_t least_capacity_bytes = batch_layout::header_bytes + record_bytes(1);

}  // namespace lightq::inline v1::protocol
