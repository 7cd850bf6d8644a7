/// Checks that each message of a run is finished exactly once, in any order and by any of several consumers.
/// Layer: bench support.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

#include "support/shared_memory.hpp"
#include "support/test_message.hpp"

namespace lightq::bench {

/// The record of one run. Make it before the consumers are forked: they share it. Any process may call it at
/// any time.
class OnceCheck {
 public:
  OnceCheck(std::uint64_t run, std::uint64_t message_count, const MessagePattern& pattern)
      : run_(run), message_count_(message_count), pattern_(pattern), words_(message_count / word_bits + 1) {}

  /// Returns the number of a message, or nothing if it is altered or belongs to another run.
  [[nodiscard]] std::optional<std::uint64_t> number_of(ByteView message) const {
    if (message.size() != pattern_.message_bytes()) return std::nullopt;
    MessageHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    if (header.run != run_ || header.kind != MessageKind::data || header.sequence >= message_count_)
      return std::nullopt;
    if (!pattern_.content_matches(header.sequence, message)) return std::nullopt;
    return header.sequence;
  }
  /// Returns the time of sending that a message has; 0: none. Requires: it has a number.
  [[nodiscard]] static std::uint64_t sent_ns_of(ByteView message) {
    MessageHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    return header.sent_ns;
  }
  /// Marks a message as finished. Returns false if it was finished already. Requires: `number` is below the
  /// number of messages.
  bool finish(std::uint64_t number) {
    const std::uint64_t bit = std::uint64_t{1} << number % word_bits;
    if ((words_[number / word_bits].fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return false;
    finished_[0].fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  /// Returns how many messages are finished.
  [[nodiscard]] std::uint64_t finished() { return finished_[0].load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_complete() { return finished() == message_count_; }

 private:
  static constexpr std::uint64_t word_bits = 64;
  const std::uint64_t run_;
  const std::uint64_t message_count_;
  const MessagePattern& pattern_;
  SharedArray<std::atomic<std::uint64_t>> words_;
  SharedArray<std::atomic<std::uint64_t>> finished_{1};
};

}  // namespace lightq::bench
