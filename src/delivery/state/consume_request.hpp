/// The wishes of a session consumer that opens a group or its own cursor. Layer: delivery.
#pragma once

#include <cstdint>
#include <string>

namespace lightq::broker {

/// Whether consumers share the messages of a cursor.
enum class GroupMode : std::uint8_t {
  group,  ///< any number of consumers; each message goes to one of them
  own,    ///< at most one consumer, over a session
};

/// Whether the consumer acknowledges messages, or they count as acknowledged when they are sent.
enum class AckMode : std::uint8_t { by_consumer, automatic };

/// A position in a topic, before it is looked up in the log.
struct StartPosition {
  enum class From : std::uint8_t { first, next, last, offset, time };
  From from = From::first;
  std::uint64_t value = 0;  ///< an offset, or microseconds since 1970, by `from`; otherwise 0
  friend bool operator==(const StartPosition&, const StartPosition&) = default;
};

/// The number of messages and bytes that may be delivered to a consumer before it allows more.
struct Credit {
  static constexpr std::uint64_t messages_max = std::uint64_t{1} << 31U;
  static constexpr std::uint64_t bytes_max = std::uint64_t{1} << 62U;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

/// The consumers that a group accepts, and whether it keeps messages in the log.
struct GroupTerms {
  GroupMode mode = GroupMode::group;  ///< own: at most one consumer, over a session
  bool holds = true;                  ///< messages that the group has not committed stay in the log
};

struct ConsumeRequest {
  std::string group;  ///< the name of the group or of the consumer's own cursor; empty: the default group, or
                      ///< a cursor that ends with its consumer
  GroupMode mode = GroupMode::group;
  AckMode acknowledgement = AckMode::by_consumer;
  StartPosition start;               ///< for a group or cursor that does not exist yet
  bool holds = false;                ///< an own cursor keeps its messages in the log
  Credit credit;                     ///< at most the maximum
  std::uint64_t incarnation = 0;     ///< the log that `start` refers to; 0: any
  std::uint32_t ack_timeout_ms = 0;  ///< 0: the default; with leases: the processing timeout
  bool leases = false;               ///< the consumer tells which messages it has started
};

}  // namespace lightq::broker
