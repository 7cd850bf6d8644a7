/// The circumstances of a delivery that delivery cannot find out itself. Layer: delivery.
#pragma once

#include <cstdint>

#include <lightq/base/limits.hpp>
#include <lightq/base/types.hpp>

#include "delivery/state/group_time.hpp"
#include "metrics/histogram.hpp"

namespace lightq::broker {

class ExpiryIndex;

/// The time and the budget of one turn of delivery. The topic's caller makes it, and it is passed down to the
/// place that reads messages for all kinds of consumers, RecordReader::next. A plain value.
struct DeliveryContext {
  /// A clock that never goes back: for ack timeouts, delays and further attempts to read.
  SteadyTime now{};
  /// The wall clock, which may step: for comparisons with times that messages carry.
  Timestamp wall{};
  /// Roughly the most bytes of records that one cursor delivers in the turn.
  std::uint64_t cursor_bytes_max = 256 * limits::KiB;
  /// The topic's expired messages; null: messages of this topic never expire. Set by Topic.
  ExpiryIndex* expiry = nullptr;
  /// Whether expired messages are delivered, in slices of their own, for a read without a cursor.
  bool shows_expired = false;
  /// Counts the time from a message's append to its first delivery. Null: nothing is counted.
  Histogram* delays = nullptr;
};

}  // namespace lightq::broker
