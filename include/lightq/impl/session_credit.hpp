/// The credit of a consumer's channel: how many messages and bytes the broker may still deliver. Layer:
/// client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <lightq/consumer_options.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_unsettled.hpp>
#include <lightq/impl/session_prefetch.hpp>

namespace lightq::inline v1 {

/// Counts the credit that the broker has, and decides when the consumer gives more. The messages in transit,
/// in the consumer and with the program together never exceed a maximum. With a SessionPrefetch, the messages
/// that the program has not begun exceed its number only after that number has fallen: credit that the broker
/// has cannot be taken back. Owned by a SessionConsumeOutput. For one thread.
///
/// `back`, a parameter of most functions, is the credit that the consumer can give: that of settled messages,
/// and what it has not given so far.
class SessionCredit {
 public:
  /// `most`: the maximum. Without `prefetch`, it is the credit of a new channel.
  explicit SessionCredit(const SessionAmount& most, std::optional<SessionPrefetch> prefetch = std::nullopt)
      : most_(most), prefetch_(prefetch) {}
  /// Returns credit that adapts, unless its size was set, or the consumer can take nothing from others by
  /// receiving messages early: it has its own cursor, or the broker counts a message as acknowledged when it
  /// sends it.
  static SessionCredit requested_by(const ConsumerOptions& options) {
    const SessionAmount most{options.prefetch_messages.value_or(SessionPrefetch::most),
                             options.prefetch_bytes};
    if (options.prefetch_messages || options.mode != ConsumeMode::group ||
        options.acknowledgement != Acknowledgement::by_consumer)
      return SessionCredit(most);
    return SessionCredit(most, SessionPrefetch(options.prefetch_time));
  }

  /// Returns what adapts the credit to the program's work, or nothing if the credit is fixed.
  [[nodiscard]] std::optional<SessionPrefetch>& prefetch() { return prefetch_; }
  /// Returns how many messages the consumer requests ahead now. Without a SessionPrefetch: the maximum.
  [[nodiscard]] std::uint64_t prefetch_messages() const {
    return prefetch_ ? std::min(prefetch_->messages(), most_.messages) : most_.messages;
  }

  /// Records that the program has not begun `waiting` messages of the present batch. So the credit follows
  /// its work.
  void look(std::uint64_t waiting, SessionTime now) {
    if (prefetch_) prefetch_->look(waiting, now);
  }
  /// Records that the program does not receive the next `messages` of the present batch.
  void dropped(std::uint64_t messages) {
    if (prefetch_) prefetch_->dropped(messages);
  }

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
    return !paused_ && givable(back) != SessionAmount();
  }
  /// Returns true if there is so much credit to give that waiting for more would slow the broker down.
  [[nodiscard]] bool is_much(const SessionAmount& back) const {
    return !paused_ && (givable(back).messages >= std::max<std::uint64_t>(prefetch_messages() / 4, 1) ||
                        back.bytes >= std::max<std::uint64_t>(most_.bytes / 4, 1));
  }
  /// Gives the broker as much of `back` as it should have now. Returns the amount.
  SessionAmount give(SessionAmount& back) {
    const SessionAmount given = givable(back);
    back.messages -= given.messages;
    back.bytes = 0;
    left_messages_ += given.messages;
    left_bytes_ += static_cast<std::int64_t>(given.bytes);
    return given;
  }

 private:
  /// Returns how much of `back` the broker should have now. Bytes go back whole: they bound the messages of
  /// the program too, not only those that wait.
  [[nodiscard]] SessionAmount givable(const SessionAmount& back) const {
    if (!prefetch_) return back;
    const std::uint64_t ahead = left_messages_ + prefetch_->waiting();
    const std::uint64_t wanted = prefetch_->messages();
    return {ahead < wanted ? std::min(back.messages, wanted - ahead) : 0, back.bytes};
  }

  SessionAmount most_;
  std::optional<SessionPrefetch> prefetch_;
  std::uint64_t left_messages_ = 0;  // that the broker may still deliver
  std::int64_t left_bytes_ = 0;      // below 0 after a batch that was larger than the credit
  bool paused_ = false;
};

}  // namespace lightq::inline v1
