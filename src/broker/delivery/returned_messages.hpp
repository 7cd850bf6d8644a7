/// Messages of a group that came back from a consumer, and wait for another. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "broker/delivery/group_time.hpp"
#include "broker/delivery/range_map.hpp"
#include "broker/delivery/record_walk.hpp"

namespace lightq::broker {

/// The reactor's thread.
class ReturnedMessages {
 public:
  /// They can be handed out at once. `deliveries`: how often they were handed out before.
  void add(OffsetRange range, std::uint32_t deliveries) { ready_.assign(range, deliveries); }
  /// Not before `due`.
  void add_delayed(OffsetRange range, std::uint32_t deliveries, SteadyTime due) {
    delayed_.assign(range, {deliveries, due});
    next_due_ = std::min(next_due_, due);
  }
  /// What is due by now can be handed out. Returns when to call it again: when the next is due, or later
  /// where there are many ranges (walk_again_after).
  SteadyTime release(SteadyTime now);

  /// Some of it can be handed out now.
  [[nodiscard]] bool ready() const { return !ready_.empty(); }
  /// The lowest of that. Requires ready().
  [[nodiscard]] Offset first_ready() const { return ready_.front().range.begin; }
  struct Slice {
    BatchSlice slice;
    std::uint32_t deliveries;
  };
  /// The lowest of what is ready, cut as RecordWalk::next_slice does. It stays here until `taken`. What
  /// cannot be read any more is given up, and counted in loss(). Nothing also while the log is unavailable().
  std::optional<Slice> next_slice(log::Log& log, std::uint64_t records_max, std::uint64_t message_bytes_max,
                                  CodecSet codecs);
  void taken(OffsetRange range) { ready_.cut(range); }
  /// See RecordWalk; of the lowest of what is ready.
  [[nodiscard]] const Error* unavailable() const { return ready() ? walk_.unavailable() : nullptr; }
  /// Takes out what of `range` can be handed out now, and calls `removed(part)` for each part, ascending.
  template <typename Removed>
  void take_ready(OffsetRange range, Removed&& removed) {
    ready_.cut(range, [&](OffsetRange part, std::uint32_t /*deliveries*/) { removed(part); });
  }

  /// The lowest message, ready or not.
  [[nodiscard]] std::optional<Offset> first() const;
  [[nodiscard]] std::size_t ranges() const { return ready_.ranges() + delayed_.ranges(); }
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return ready_.messages_in(range) + delayed_.messages_in(range);
  }
  /// In all: those that can be handed out, and those that wait until they are due.
  [[nodiscard]] std::uint64_t ready_messages() const { return ready_.messages(); }
  [[nodiscard]] std::uint64_t delayed_messages() const { return delayed_.messages(); }
  /// Gives up what lies before `first`, which the log has moved past: it counts in loss(). What was given up
  /// is not walked over again.
  void give_up_before(Offset first);
  /// The first range, ready or not, that ends behind `offset`.
  [[nodiscard]] std::optional<OffsetRange> first_behind(Offset offset) const;
  [[nodiscard]] WalkLoss loss() const {
    WalkLoss loss = walk_.loss();
    loss.trimmed += given_up_;
    return loss;
  }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return walk_.take_damage(); }
  /// Ranges that release() has walked over since the start.
  [[nodiscard]] std::uint64_t ranges_walked() const { return ranges_walked_; }
  void clear() {
    ready_.clear();
    delayed_.clear();
    next_due_ = never;
  }

 private:
  struct Delayed {
    std::uint32_t deliveries;
    SteadyTime due;
    friend bool operator==(const Delayed&, const Delayed&) = default;
  };

  RangeMap<std::uint32_t> ready_;  // and how often they were handed out
  RangeMap<Delayed> delayed_;
  RecordWalk walk_{Offset{0}};  // where the last one was read
  std::uint64_t given_up_ = 0;
  SteadyTime next_due_ = never;  // no delayed one is due earlier
  SteadyTime not_before_{};      // delayed ones are not looked at again
  std::uint64_t ranges_walked_ = 0;
};

}  // namespace lightq::broker
