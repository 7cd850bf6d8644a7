/// The credit of a consumer's channel: how many messages and bytes the broker may still deliver. Layer:
/// client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <lightq/detail/session_unsettled.hpp>

namespace lightq::inline v1 {

/// Counts the credit that the broker has, and decides when the consumer gives more. The messages in transit,
/// in the consumer and with the program together never exceed the credit of a new channel. Owned by a
/// SessionConsumeOutput. For one thread.
///
/// `back`, a parameter of most functions, is the credit that the consumer can give back: that of settled
/// messages.
class SessionCredit {
 public:
  /// `most`: the credit of a new channel.
  explicit SessionCredit(const SessionAmount& most) : most_(most) {}

  /// Stops giving credit, or gives it again.
  void pause(bool paused) { paused_ = paused; }

  /// Returns the credit with which to open a new channel: none while paused. Sets `back` to the remainder.
  SessionAmount begin(SessionAmount& back) {
    back = most_;
    left_messages_ = 0;
    left_bytes_ = 0;
    return paused_ ? SessionAmount() : give(back);
  }
  /// Counts a delivered batch. Returns false if the broker had no credit for it. One batch may use more bytes
  /// than are left.
  bool use(const SessionAmount& delivered) {
    if (delivered.messages > left_messages_ || left_bytes_ <= 0) return false;
    left_messages_ -= delivered.messages;
    left_bytes_ -= static_cast<std::int64_t>(delivered.bytes);
    return true;
  }

  /// Returns true if there is credit to give now.
  [[nodiscard]] bool is_due(const SessionAmount& back) const {
    return !paused_ && (back.messages != 0 || back.bytes != 0);
  }
  /// Returns true if there is so much credit to give that waiting for more would slow the broker down.
  [[nodiscard]] bool is_much(const SessionAmount& back) const {
    return !paused_ && (back.messages >= std::max<std::uint64_t>(most_.messages / 4, 1) ||
                        back.bytes >= std::max<std::uint64_t>(most_.bytes / 4, 1));
  }
  /// Gives the broker all of `back`. Returns the amount.
  SessionAmount give(SessionAmount& back) {
    const SessionAmount given = std::exchange(back, {});
    left_messages_ += given.messages;
    left_bytes_ += static_cast<std::int64_t>(given.bytes);
    return given;
  }

 private:
  SessionAmount most_;
  std::uint64_t left_messages_ = 0;  // that the broker may still deliver
  std::int64_t left_bytes_ = 0;      // below 0 after a batch that was larger than the credit
  bool paused_ = false;
};

}  // namespace lightq::inline v1
