/// The deliveries of a group that ended, by the way in which they did. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// Messages since the broker's start. Each event counts a message once; a delivery ends by one of these
/// events, and by `dead` in addition to the failure that was its last one.
struct GroupCounters {
  std::uint64_t acknowledged = 0;  ///< by consumers; or sent, to plain and automatic ones
  std::uint64_t released = 0;      ///< returned without a failure, or not begun when the consumer left
  std::uint64_t failed = 0;        ///< rejected for another attempt
  std::uint64_t timed_out = 0;
  std::uint64_t lost_with_session = 0;  ///< begun, when the consumer left
  std::uint64_t revoked = 0;            ///< taken back from a consumer, without a failure
  std::uint64_t dead = 0;
  std::uint64_t expired = 0;  ///< not delivered, or not again, because their time to live was over

  /// Returns how many deliveries have ended.
  [[nodiscard]] std::uint64_t ended() const {
    return acknowledged + released + failed + timed_out + lost_with_session + revoked;
  }
  friend bool operator==(const GroupCounters&, const GroupCounters&) = default;
};

}  // namespace lightq::broker
