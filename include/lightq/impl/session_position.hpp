/// The position of a consumer, from one opening of its channel to the next. Layer: client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/base/types.hpp>
#include <lightq/consumer_options.hpp>
#include <lightq/protocol/session_consuming.hpp>

namespace lightq::inline v1 {

/// Knows where a consumer begins when it opens its channel again, and checks the offsets that the broker
/// delivers. The broker keeps the position of a group or of a cursor with a name. Only the consumer knows the
/// position of a consumer without a name (mode `own`, no group). Owned by a SessionConsumeLink. For one
/// thread.
class SessionPosition {
 public:
  explicit SessionPosition(const ConsumerOptions& options)
      : from_(options.from),
        from_incarnation_(options.incarnation),
        is_own_(options.mode == ConsumeMode::own),
        is_nameless_(is_own_ && options.group.empty()) {}

  /// Writes into the request where the channel begins.
  void begin(session::ConsumeOpen& open) const {
    open.start = from_;
    open.incarnation = from_incarnation_;
    if (goes_on_at_) {
      open.start = From::offset(*goes_on_at_);
      open.incarnation = incarnation_.value_or(0);
    } else if (begins_anew_) {
      open.start = From::first();
      open.incarnation = 0;
    }
  }
  /// Records the broker's answer to that request. Returns true if the broker has another log than before, or
  /// one that has lost its end.
  bool opened(const session::ConsumeOpened& opened) {
    const bool is_new_log = incarnation_ && *incarnation_ != opened.incarnation;
    // A consumer without a name names the incarnation, so another log would have been refused. But the log
    // may have lost its end.
    const bool has_lost_its_end = goes_on_at_ && opened.next < goes_on_at_->value;
    const bool is_other = goes_on_at_ ? has_lost_its_end : is_new_log || begins_anew_;
    if (goes_on_at_ && goes_on_at_->value < opened.next)
      lost_before_ += distance(*goes_on_at_, {opened.next});
    begins_anew_ = false;
    incarnation_ = opened.incarnation;
    newest_ = {};
    if (is_nameless_) goes_on_at_ = Offset{opened.next};
    return is_other;
  }
  /// Records that the broker has another log than the one that the request named: the topic is in memory and
  /// the broker was restarted. Returns true if the consumer continues at the new log's first message; false
  /// if the request named the log that the program asked for, so the consumer cannot continue.
  bool log_was_replaced() {
    begins_anew_ = goes_on_at_.has_value();
    goes_on_at_.reset();
    return begins_anew_;
  }
  /// Records that a seek has moved the position to `to`.
  void sought(Offset to) {
    newest_ = {};
    lost_before_ = 0;
    if (is_nameless_) goes_on_at_ = to;
  }

  /// Returns true if the broker may deliver a batch that begins at `begin`. A member of a group receives no
  /// notice when another member seeks, so its offsets may go back. `delivery`: the number of the attempt;
  /// redeliveries may have any offset. `hand_out`: 0 without leases. With leases, a message that the program
  /// had not begun is redelivered with the same number.
  [[nodiscard]] bool permits(Offset begin, std::uint32_t delivery, std::uint32_t hand_out) const {
    return !is_own_ || delivery > 1 || hand_out != 0 || begin >= newest_;
  }
  /// Records that the messages of `range` were delivered. Returns how many messages were lost before the
  /// channel was opened, which no earlier call has returned.
  std::uint64_t delivered(const OffsetRange& range) {
    newest_ = std::max(newest_, range.end);
    if (goes_on_at_) goes_on_at_ = std::max(*goes_on_at_, range.end);
    return std::exchange(lost_before_, 0);
  }

 private:
  session::Place from_;
  std::uint64_t from_incarnation_;
  bool is_own_;
  bool is_nameless_;
  std::optional<std::uint64_t> incarnation_;  // of the log when the channel was last opened
  std::optional<Offset> goes_on_at_;          // the position of a consumer without a name
  bool begins_anew_ = false;                  // the log of that position is gone
  Offset newest_;  // one past the newest message delivered since the opening or a seek
  std::uint64_t lost_before_ = 0;
};

}  // namespace lightq::inline v1
