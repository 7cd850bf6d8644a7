/// Counters of a consumer on a session. Layer: client.
#pragma once

#include <cstdint>

namespace lightq::inline v1 {

/// Counters of a consumer on a session, since it was made. They count messages if not stated otherwise.
struct ConsumerStats {
  std::uint64_t received = 0;      ///< received by the application
  std::uint64_t again = 0;         ///< of these, redeliveries
  std::uint64_t acknowledged = 0;  ///< while they were in flight to this consumer
  std::uint64_t rejected = 0;      ///< or released, while they were in flight to this consumer
  /// Acknowledged, rejected or extended too late: the broker had taken them back.
  std::uint64_t late = 0;
  /// Taken back by the broker before they were settled; also those that the program never received. 0 if the
  /// broker gives no leases.
  std::uint64_t revoked = 0;
  std::uint64_t lost = 0;   ///< dropped or damaged before they could be delivered
  std::uint64_t opens = 0;  ///< how often the channel was opened
  /// How often the topic was opened with another log than before, or with a log that had lost its end. In
  /// both cases the broker assigns the same offsets to other messages. A consumer without a name then
  /// continues where the two logs begin to differ, or at the first message. With a name, or in a group, this
  /// also counts a broker that was killed and lost nothing.
  std::uint64_t new_logs = 0;
  std::uint64_t violations =
      0;  ///< how often the consumer ended a connection because of a protocol violation
  /// Not a counter: how many messages the consumer requests ahead of its program now (ConsumerOptions). 0
  /// after close().
  std::uint64_t prefetch_messages = 0;
};

}  // namespace lightq::inline v1
