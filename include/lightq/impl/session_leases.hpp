/// The messages that a consumer with leases names as started, and its revoked ones. docs/session.md,
/// "Leases". Layer: client.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <lightq/base/types.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_settling.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

/// Decides which messages to name as started before the program receives them, keeps the revocations that
/// arrived early, and stops the tokens of revoked messages. Owned by a SessionConsumeLink. Lifetime:
/// `settling` outlives it. For one thread.
///
/// *Window*: the offsets that were named as started last. They are those that the program receives within
/// about 2 ms at its present rate. The broker marks messages of the window that it delivers later, too. So a
/// quick program names many messages at a time, and a slow one names each.
class SessionLeases {
 public:
  explicit SessionLeases(SessionSettling& settling) : settling_(settling) {}

  /// Records that the channel was opened. `is_on`: the broker gives leases.
  void opened(bool is_on) {
    is_on_ = is_on;
    ++connection_;
    window_ = {};
    ahead_.clear();
    messages_ = 0;
  }
  [[nodiscard]] bool is_on() const { return is_on_; }
  /// Returns the hand-out with this number on the wire; 0 without leases.
  [[nodiscard]] HandOut hand_out(std::uint32_t number) const {
    return is_on_ ? hand_out_of(connection_, number) : 0;
  }
  /// Returns the number on the wire for requests about these messages, or nothing without leases.
  [[nodiscard]] std::optional<std::uint32_t> number_of(HandOut hand_out) const {
    return is_on_ ? std::optional(wire_number(hand_out)) : std::nullopt;
  }

  // --- Started messages.

  /// Returns the end of the messages at the front of `left`, a part of a batch, that were named as started
  /// and that the broker has not taken back.
  [[nodiscard]] Offset started_end(OffsetRange left, HandOut hand_out) const {
    if (!is_on_ || hand_out >> 32U != connection_) return left.end;
    const bool is_inside = hand_out == window_hand_out_ && window_.begin <= left.begin;
    // The program receives a message again that it had: each such message is named by itself.
    if (!is_inside || settling_.revoked.overlaps(left)) return left.begin;
    const Offset end = std::clamp(window_.end, left.begin, left.end);
    return std::min(end, first_revoked(left, hand_out).begin);
  }
  /// Chooses the next window, which begins with the first message of `left`. `is_whole`: the program receives
  /// all of `left` at once. `is_again`: the messages were delivered before. The window then ends with the
  /// batch: the broker delivers a suspect in a batch of its own, so that no other message has failed if the
  /// program does not survive it. Returns the range to name. Requires: started_end returned the begin of
  /// `left`.
  OffsetRange start(OffsetRange left, HandOut hand_out, bool is_whole, SessionTime now,
                    bool is_again = false) {
    const bool again = !settling_.revoked.empty() && settling_.revoked.overlaps(left);
    window_ = {left.begin, left.begin + (again ? 1 : next_quantum(now))};
    if (is_whole) window_.end = std::max(window_.end, left.end);
    if (is_again) window_.end = std::min(window_.end, left.end);
    messages_ = distance(window_.begin, window_.end);
    started_at_ = now;
    window_hand_out_ = hand_out;
    // The program receives it again, so an acknowledgement is not late.
    if (again) settling_.revoked.take(is_whole ? left : OffsetRange{left.begin, left.begin + 1});
    return window_;
  }
  /// Called when a batch comes whose messages were delivered before: they are not those of the window, even
  /// if their offsets are in it.
  void end_window() { window_ = {}; }
  /// Returns the part of the window that the program has not received. `next`: the message that it would
  /// receive next. Returns nothing if that part is empty.
  [[nodiscard]] std::optional<OffsetRange> not_begun(Offset next) const {
    if (!is_on_ || next < window_.begin || window_.end <= next) return std::nullopt;
    return OffsetRange{next, window_.end};
  }
  [[nodiscard]] HandOut window_hand_out() const { return window_hand_out_; }

  // --- Revocations.

  /// Keeps a revocation that waits behind messages that were delivered before it. Returns its hand-out: those
  /// before it are over.
  HandOut came_early(const session::Revoked& revoked) {
    OffsetRanges ranges;
    for (const OffsetRange& range : revoked.ranges) ranges.add(range);
    ahead_.push_back({hand_out(revoked.before), std::move(ranges)});
    return ahead_.back().before;
  }
  /// Called when a revocation is taken in its turn. Returns true if it came early.
  bool was_early() {
    if (ahead_.empty()) return false;
    ahead_.erase(ahead_.begin());
    return true;
  }
  /// Calls `revoke(OffsetRange, HandOut before)` for each range of the revocations that came early.
  template <typename Revoke>
  void for_each_early(Revoke&& revoke) const {
    for (const Early& early : ahead_) {
      for (const OffsetRange& range : early.ranges.all()) revoke(range, early.before);
    }
  }
  /// Returns the first revoked range in `left`, a part of a batch, or an empty range at its end.
  [[nodiscard]] OffsetRange first_revoked(OffsetRange left, HandOut hand_out) const {
    OffsetRange first{left.end, left.end};
    for_each_early([&](OffsetRange range, HandOut before) {
      const OffsetRange part{std::max(range.begin, left.begin), std::min(range.end, left.end)};
      if (part.begin < part.end && hand_out < before && part.begin < first.begin) first = part;
    });
    return first;
  }

  // --- Stop tokens.

  /// Returns a token that is stopped when the message is no longer in flight since this hand-out.
  std::stop_token watch(Offset offset, HandOut hand_out) {
    if (watched_.size() >= 2 * watched_after_check_ + 16) stop_unheld();
    std::stop_source source;
    if (!settling_.unsettled.holds(offset, hand_out)) {
      source.request_stop();
    } else {
      watched_.push_back({offset, hand_out, source});
    }
    return source.get_token();
  }
  /// Stops the tokens of messages that are not in flight any more.
  void stop_unheld() {
    std::erase_if(watched_, [&](Watched& each) {
      const bool is_over = !settling_.unsettled.holds(each.offset, each.hand_out);
      if (is_over) each.source.request_stop();
      return is_over;
    });
    watched_after_check_ = watched_.size();
  }

 private:
  struct Early {
    HandOut before;
    OffsetRanges ranges;
  };
  struct Watched {
    Offset offset;
    HandOut hand_out;
    std::stop_source source;
  };

  static constexpr std::chrono::microseconds window_time{2000};
  static constexpr std::uint64_t messages_max = 8192;

  /// Returns how many messages to name: those that the program receives in 2 ms, at the rate since the last
  /// window; at most twice as many as then.
  [[nodiscard]] std::uint64_t next_quantum(SessionTime now) const {
    if (messages_ == 0) return 1;
    const auto taken = std::chrono::duration_cast<std::chrono::microseconds>(now - started_at_).count();
    const std::uint64_t most = std::min(2 * messages_, messages_max);
    if (taken <= 0) return most;
    const auto expected = messages_ * static_cast<std::uint64_t>(window_time.count());
    return std::clamp<std::uint64_t>(expected / static_cast<std::uint64_t>(taken), 1, most);
  }

  SessionSettling& settling_;
  bool is_on_ = false;
  std::uint64_t connection_ = 0;  // how often the channel was opened
  OffsetRange window_{};
  HandOut window_hand_out_ = 0;
  std::uint64_t messages_ = 0;  // of the window; 0: no window on this connection
  SessionTime started_at_;
  std::vector<Early> ahead_;  // in the order of their frames
  std::vector<Watched> watched_;
  std::size_t watched_after_check_ = 0;
};

}  // namespace lightq::inline v1
