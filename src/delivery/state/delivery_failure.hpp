/// How a delivery ended without an acknowledgement, and why a message is dead. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// Why a message in flight is taken back from a consumer. All but `released`, `unstarted` and `untaken`
/// are failures: they count as an attempt.
enum class ReturnCause : std::uint8_t {
  released,   ///< the consumer returned a message that its program had not begun, or that was not its fault
  unstarted,  ///< the consumer ended, or was silent, and had not started the message
  untaken,    ///< the consumer had no space for the message: it was not delivered, and nothing is counted
  rejected,   ///< the program asked for another attempt
  timed_out,  ///< the processing or acknowledge timeout has passed
  lost,       ///< the consumer ended, and had started the message
};

/// Why a message is dead. The numbers are stored.
enum class DeathCause : std::uint8_t {
  attempts = 1,  ///< it failed `max_attempts` times
  rejected = 2,  ///< a consumer said so
  expired = 3,   ///< its time to live was over
};

}  // namespace lightq::broker
