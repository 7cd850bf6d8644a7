/// The interface through which a group delivers to a consumer over a session. Layer: delivery.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/codec.hpp>

#include "delivery/batches/delivered_slice.hpp"
#include "delivery/state/client_error.hpp"
#include "delivery/state/group_time.hpp"

namespace lightq::broker {

class ConsumerGroup;
class GroupMember;

/// Why messages in flight were taken back from a consumer.
enum class RevokeCause : std::uint8_t {
  processing_timeout,
  silent,  ///< its client was silent and had not started them, and another consumer could take them
  seek,
  purge,
  rights,
};

/// A consumer over a session. Its channel implements this interface, and its group calls it. Thread: the
/// reactor's.
class SessionConsumer {
 public:
  /// The state in which a consumer begins.
  struct Opened {
    Offset next;
    Offset committed;
    std::uint32_t ack_timeout_ms = 0;  ///< with leases: the processing timeout; 0: none
  };

  /// The consumer's group, and its member there.
  struct Membership {
    ConsumerGroup* group = nullptr;
    GroupMember* member = nullptr;
  };

  /// When its client joined, and when it gave the last sign of life; nothing: it gives none.
  struct Life {
    SteadyTime joined;
    std::optional<SteadyTime> heard = {};
  };

  SessionConsumer() = default;
  SessionConsumer(const SessionConsumer&) = delete;
  SessionConsumer& operator=(const SessionConsumer&) = delete;
  virtual ~SessionConsumer() = default;

  /// Returns the membership while the topic has the consumer attached, else nulls: it is not opened yet, or
  /// it was detached a moment ago and its `end` follows.
  [[nodiscard]] const Membership& membership() const { return membership_; }
  /// Called by the topic when it attaches or detaches the consumer.
  void set_membership(const Membership& membership) { membership_ = membership; }

  /// Admits the consumer. Its group is now stored as durably as the topic is. Deliveries follow.
  virtual void admitted(const Opened& opened) = 0;
  /// Returns true if it can take a slice now. After false it is not asked again until it calls
  /// TopicConsumers::wake.
  [[nodiscard]] virtual bool writable() const = 0;
  /// Returns the codecs of the compressed batches that it can read. Other batches are delivered decompressed.
  [[nodiscard]] virtual CodecSet codecs() const = 0;
  /// Takes the slice: copies it, or passes it to the operating system. Its bytes are not valid after the
  /// call.
  virtual void deliver(const DeliveredSlice& delivered) = 0;
  /// Returns how many records at the end of the last delivered slice it can never take. The group delivers
  /// them to others. It reports them once, and is not writable any more.
  [[nodiscard]] virtual std::uint32_t refused() const { return 0; }
  /// Returns the times for its entry in statistics.
  [[nodiscard]] virtual Life life() const { return {}; }
  /// Called when all slices of a turn are delivered.
  virtual void flush() = 0;
  /// Returns true if it wants to be told of acknowledgements that come too late. With leases, it is told
  /// anyway.
  [[nodiscard]] virtual bool hears_late() const { return false; }
  /// Reports ranges of its requests that came too late: the messages were taken back before. Ascending, and
  /// not adjacent.
  virtual void late(const std::vector<OffsetRange>& /*ranges*/) {}
  /// Reports messages that were taken back. Called only if the consumer has leases. For these messages all
  /// hand-outs with numbers below `before` are over. `ranges`: ascending, and not adjacent.
  virtual void revoked(RevokeCause /*cause*/, std::uint32_t /*before*/,
                       const std::vector<OffsetRange>& /*ranges*/) {}
  /// Ends the consumer. The topic has already removed it.
  virtual void end(ClientError code, const std::string& why) = 0;

 private:
  Membership membership_;
};

}  // namespace lightq::broker
