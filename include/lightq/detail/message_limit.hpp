/// Computes the longest message that a producer can send, and names the limit that decides it. Layer: client.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <lightq/base/batch_layout.hpp>
#include <lightq/base/error.hpp>
#include <lightq/base/limits.hpp>
#include <lightq/producer_options.hpp>
#include <lightq/protocol/session_producing.hpp>

namespace lightq::inline v1 {

/// The lowest known limit of a message's size, and its name. A plain value.
struct MessageLimit {
  std::size_t bytes = 0;  ///< of a message, attributes included
  const char* name = "";

  /// Returns the lowest limit. `opened`: the broker's reply when the producer opened its topic, if it has
  /// arrived; `batch_bytes_max`: the longest batch that the broker accepts.
  static MessageLimit of(const ProducerOptions& options, const std::optional<session::ProduceOpened>& opened,
                         std::size_t batch_bytes_max) {
    constexpr std::size_t around = batch_layout::header_bytes + record_bytes(0);
    MessageLimit lowest{limits::message_bytes_max_max - around, "the maximum for a batch"};
    lowest.lower_to(options.memory_bytes_max - around,
                    "the maximum that the producer's option memory_bytes_max allows");
    if (!opened) return lowest;
    lowest.lower_to(batch_bytes_max - around, "the maximum for a batch of this broker");
    if (opened->message_bytes_max <= lowest.bytes)
      lowest = {static_cast<std::size_t>(opened->message_bytes_max), "the broker's message_bytes_max"};
    return lowest;
  }

  /// Returns the error for a message of `message_bytes`, which exceeds this limit.
  [[nodiscard]] Error exceeded_by(std::size_t message_bytes) const {
    return {ErrorCode::too_large, "a message of " + std::to_string(message_bytes) + " bytes is larger than " +
                                      std::to_string(bytes) + " bytes, " + name};
  }

 private:
  void lower_to(std::size_t most, const char* limit) {
    if (most < bytes) *this = {most, limit};
  }
};

}  // namespace lightq::inline v1
