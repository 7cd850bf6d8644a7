/// A consumer over a session, as its group sees it. Layer: delivery.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <lightq/protocol/session_consuming.hpp>

#include "broker/delivery/batch_slice.hpp"

namespace lightq::broker {

/// What goes to a consumer in one frame.
struct HandedSlice {
  BatchSlice slice;
  std::uint32_t delivery = 1;  ///< how often its messages were handed out, this time included
  std::uint64_t lost = 0;      ///< messages since the last one handed out that cannot be had
};

/// The reactor's thread.
class SessionConsumer {
 public:
  /// Where it begins.
  struct Opened {
    Offset next;
    Offset committed;
    std::uint32_t ack_timeout_ms = 0;
  };

  SessionConsumer() = default;
  SessionConsumer(const SessionConsumer&) = delete;
  SessionConsumer& operator=(const SessionConsumer&) = delete;
  virtual ~SessionConsumer() = default;

  /// It may begin: that its group exists survives what the topic survives. Messages follow.
  virtual void admitted(const Opened& opened) = 0;
  /// Takes a slice now. Who says false asks for more later, with HostedTopic::consumer_writable, and
  /// is not asked again before.
  [[nodiscard]] virtual bool writable() const = 0;
  /// Of compressed batches, which it can read: the others come unpacked.
  [[nodiscard]] virtual CodecSet codecs() const = 0;
  /// Takes it, a copy or all the way to the operating system: its bytes are not valid any longer afterwards.
  virtual void deliver(const HandedSlice& handed) = 0;
  /// Records at the end of the slice that was delivered last that it can never take: they are for others. It
  /// says so once, and is not writable any more.
  [[nodiscard]] virtual std::uint32_t refused() const { return 0; }
  /// All of a turn's slices have been delivered.
  virtual void flush() = 0;
  /// Returns true if it wants to be told of acknowledgements that come too late.
  [[nodiscard]] virtual bool hears_late() const { return false; }
  /// It has acknowledged these too late: others have them. Ascending, not touching each other.
  virtual void late(const std::vector<OffsetRange>& /*ranges*/) {}
  /// The topic has nothing more to do with it, and has forgotten it.
  virtual void end(session::Code code, const std::string& why) = 0;
};

}  // namespace lightq::broker
