/// How a member of a group ends. Layer: delivery.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// How a member ends, which decides about the messages that it has not acknowledged.
enum class MemberEnd : std::uint8_t {
  lost,    ///< by no wish of its client: messages that were started have failed
  closed,  ///< its client has closed it. A client without leases cannot say what it has started: all messages
           ///< are released
  broker_stops,  ///< no message has failed so often that it is dead, as after a kill of the broker
};

/// The part of a member that says how it ends. A plain value for one thread.
class MemberEnding {
 public:
  /// Sets how the member ends, before the group detaches it. The default: its client was lost.
  void ends_by(MemberEnd end) { end_ = end; }
  [[nodiscard]] MemberEnd end() const { return end_; }

 private:
  MemberEnd end_ = MemberEnd::lost;
};

}  // namespace lightq::broker
