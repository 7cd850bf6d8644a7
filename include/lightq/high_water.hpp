/// Chooses a ZeroMQ high-water mark in messages so that about so many bytes wait. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace lightq::inline v1 {

/// Watches the sizes of messages that pass a socket and says when its mark should change. One thread.
///
/// Only for a sending socket, changed right after a message went in. A mark may rise at any time then, but
/// may only fall step by step: libzmq's reader reports progress each time it
/// has read half the mark, so a writer whose mark falls below what had not been reported would wait for ever.
/// A step to no less than half, not repeated until a whole mark's worth of messages has passed, is safe.
class HighWater {
 public:
  static constexpr int messages_min = 2;
  static constexpr int messages_at_first = 16;

  /// `bytes`: what may wait; `messages_max`: the mark's own bound.
  HighWater(std::uint64_t bytes, int messages_max)
      : bytes_(bytes),
        messages_max_(std::max(messages_max, messages_min)),
        mark_(std::min(messages_at_first, messages_max_)) {}

  /// The mark to use now.
  [[nodiscard]] int mark() const { return mark_; }

  /// Notes a message; the new mark if it is to change.
  std::optional<int> observe(std::size_t message_bytes) {
    window_bytes_ += message_bytes;
    if (++window_messages_ < static_cast<std::uint64_t>(mark_)) return std::nullopt;
    const std::uint64_t mean = std::max<std::uint64_t>(1, window_bytes_ / window_messages_);
    window_bytes_ = 0;
    window_messages_ = 0;
    const auto wanted = static_cast<int>(
        std::clamp<std::uint64_t>(bytes_ / mean, messages_min, static_cast<std::uint64_t>(messages_max_)));
    const int next = std::max(wanted, (mark_ + 1) / 2);
    const bool worth_it = next > mark_ + mark_ / 4 || next < mark_ - mark_ / 4;
    if (!worth_it) return std::nullopt;
    mark_ = next;
    return mark_;
  }

 private:
  std::uint64_t bytes_;
  int messages_max_;
  int mark_;
  std::uint64_t window_bytes_ = 0;
  std::uint64_t window_messages_ = 0;
};

}  // namespace lightq::inline v1
