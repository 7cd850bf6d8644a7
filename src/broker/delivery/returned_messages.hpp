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
  }
  /// What is due by now can be handed out. When the next is.
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
  /// cannot be read any more is given up, and counted in loss().
  std::optional<Slice> next_slice(log::Log& log, std::uint64_t records_max, std::uint64_t message_bytes_max,
                                  CodecSet codecs);
  void taken(OffsetRange range) { ready_.cut(range); }

  /// The lowest message, ready or not.
  [[nodiscard]] std::optional<Offset> first() const;
  [[nodiscard]] std::size_t ranges() const { return ready_.ranges() + delayed_.ranges(); }
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return ready_.messages_in(range) + delayed_.messages_in(range);
  }
  /// Of these, what was never handed out since the start.
  [[nodiscard]] std::uint64_t fresh_messages_from(Offset first) const;
  void append_ranges_to(std::vector<OffsetRange>& ranges) const;
  [[nodiscard]] const WalkLoss& loss() const { return walk_.loss(); }
  [[nodiscard]] std::vector<OffsetRange> take_damage() { return walk_.take_damage(); }
  void clear() {
    ready_.clear();
    delayed_.clear();
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
};

}  // namespace lightq::broker
