/// The messages that one cursor has delivered in one dispatch. Layer: delivery.
#pragma once

#include <cstdint>

#include <lightq/base/batch.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

/// A sum over all turns of one dispatch of a cursor. A plain value.
struct TurnResult {
  std::uint64_t messages = 0;  ///< delivered for the first time
  std::uint64_t redelivered = 0;
  std::uint64_t uncounted = 0;  ///< delivered again with the number 1: the earlier deliveries did not count
  std::uint64_t bytes = 0;
  bool more = false;       ///< stopped at its bound while consumers could take more
  bool held_back = false;  ///< the group's redelivery queue is newly full: it delivers nothing newer
  std::uint64_t work_from = TurnWork::bytes();
  /// Returns the number of messages that were delivered, for the first time or again.
  [[nodiscard]] std::uint64_t deliveries() const { return messages + redelivered + uncounted; }
  [[nodiscard]] std::uint64_t record_bytes() const { return bytes + deliveries() * lightq::record_bytes(0); }
  /// Returns record_bytes() plus the cost of finding and unpacking the messages.
  [[nodiscard]] std::uint64_t cost() const { return record_bytes() + (TurnWork::bytes() - work_from); }
  /// Counts messages that a consumer has taken. `delivery` is the number of their deliveries; `again`: they
  /// were in a redelivery queue.
  void count(std::uint32_t delivery, bool again, std::uint64_t taken) {
    (delivery != 1 ? redelivered : again ? uncounted : messages) += taken;
  }
};

}  // namespace lightq::broker
