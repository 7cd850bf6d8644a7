/// The numbers of a member's hand-outs, and which messages it has started. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// The part of a member that only a consumer with leases uses. docs/session.md, "Leases".
///
/// A hand-out is the deliveries to the member between two changes of its number. The number grows before the
/// first delivery after messages were taken back or rejected, or after the group's position was moved. So two
/// deliveries of a message have different numbers, and most messages in flight have the same one.
///
/// A consumer may name messages as started that are delivered later: the window. It ends with the hand-out
/// number for which it was named. GroupMember owns it. Thread: the reactor's.
class MemberLease {
 public:
  /// `seeks`: how often the group's position was moved so far.
  MemberLease(bool is_on, std::uint64_t seeks) : seeks_(seeks), number_(is_on ? 1 : 0) {}

  /// Returns true if the consumer has leases.
  [[nodiscard]] bool is_on() const { return number_ != 0; }
  /// Returns the number of the next delivery; 0 without leases. The delivery follows. `seeks`: how often the
  /// group's position was moved so far.
  std::uint32_t number_of_delivery(std::uint64_t seeks) {
    if (seeks != seeks_) {
      seeks_ = seeks;
      note_taken_back();  // the member may have finished messages that are delivered again
    }
    if (std::exchange(taken_back_, false)) {
      number_ = number_after_all();
      window_ = {};
    }
    return number_;
  }
  /// Returns a number that is greater than that of any hand-out up to now.
  [[nodiscard]] std::uint32_t number_after_all() const { return number_ + 1 != 0 ? number_ + 1 : 1; }
  /// Called when messages were taken back, or the consumer has returned them.
  void note_taken_back() { taken_back_ = is_on(); }

  /// Called when the consumer has named `range` as started, with the number `hand_out`.
  void start(OffsetRange range, std::uint32_t hand_out) {
    if (hand_out == number_ && !taken_back_) window_ = range;
  }
  /// Returns the part of `range`, which is delivered now, that was named as started before. It may be empty.
  [[nodiscard]] OffsetRange started_of(OffsetRange range) const {
    const Offset begin = std::max(range.begin, std::min(window_.begin, range.end));
    return {begin, std::max(begin, std::min(window_.end, range.end))};
  }

 private:
  std::uint64_t seeks_;      // the group's, at the last delivery
  std::uint32_t number_;     // of the last delivery; 0: no leases
  bool taken_back_ = false;  // since the last delivery
  OffsetRange window_{};
};

}  // namespace lightq::broker
