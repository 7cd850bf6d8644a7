/// The reference model of a subscriber.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "model/plain_sink.hpp"

namespace lightq::model {

/// A plain value.
struct ModelSubscriber {
  std::uint64_t next = 0;           ///< the message that it gets next
  std::uint64_t skipped = 0;        ///< since the start of the process: lost, or expired
  std::unique_ptr<PlainSink> sink;  ///< null: no consumer is connected
  /// Positions up to which everything had been sent, and when they were left.
  std::deque<std::pair<std::int64_t, std::uint64_t>> former = {};
  std::int64_t joined_ms = 0;
  bool is_saved = false;  ///< a start finds it

  /// Returns the position up to which everything is sent.
  [[nodiscard]] std::uint64_t committed() const {
    const auto unsent = sink == nullptr ? std::nullopt : sink->first_unsent();
    return unsent ? unsent->value : next;
  }
};

}  // namespace lightq::model
