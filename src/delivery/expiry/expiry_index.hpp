/// The messages of a topic that have expired, and those that will. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "delivery/expiry/expiry_times.hpp"
#include "delivery/state/group_time.hpp"
#include "log/log.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Knows the expired messages of one log. A message expires when the wall clock has reached its append time
/// plus the topic's time to live or its own, whichever is less. Once expired it stays so until the broker
/// starts again, even if the clock is set back.
///
/// Two ways lead there. `tend` finds messages within a second of their expiry, whether or not anything reads
/// them: by the topic's time it finds a prefix of the log (of a log with times that go back, the part before
/// the first message that has not expired), and single messages by ExpiryTimes. `check` finds them at the
/// moment when they would be delivered, so that nobody receives one too late.
///
/// Messages with a time of their own come in through `note`, which only remembers where they are. `tend`
/// reads them from the log in bounded pieces. So messages that were stored before a start are treated as
/// others.
///
/// Topic owns it, if the topic has ever had such a time or message. Thread: the reactor's.
class ExpiryIndex {
 public:
  /// `far_bytes_max`: see ExpiryTimes. Lifetime: the log outlives it.
  explicit ExpiryIndex(log::BatchLog& log, std::size_t far_bytes_max = ExpiryTimes::far_bytes_most)
      : log_(log), times_(far_bytes_max) {}
  ExpiryIndex(const ExpiryIndex&) = delete;
  ExpiryIndex& operator=(const ExpiryIndex&) = delete;

  /// Sets the topic's time to live, for all messages that have not expired. 0: none.
  void set_ttl(std::int64_t ttl_ms) {
    ttl_ms_ = ttl_ms;
    prefix_due_.reset();
  }
  /// Notes that stored messages may have a time to live of their own.
  void note(OffsetRange range);
  /// Adds messages of which each expires at `expiry` by a time of its own. `wall`: the present time.
  void expect(OffsetRange range, Timestamp expiry, Timestamp wall);

  /// Finds expired messages, with a bounded amount of work. Returns true if there may be more at once.
  bool tend(Timestamp wall, SteadyTime now);
  /// Returns a time of the wall clock at which to call `tend` next, or ExpiryTimes::nothing_due.
  [[nodiscard]] Timestamp next_due() const;
  /// Returns when to call `tend` again because it has not done all that it could, or `never`.
  [[nodiscard]] SteadyTime next_timer(Timestamp wall, SteadyTime now) const;
  /// Returns true if `tend` would find nothing at any time, and no message has expired.
  [[nodiscard]] bool is_idle() const {
    return ttl_ms_ == 0 && unread_.empty() && times_.empty() && expired_.empty() && fresh_.empty();
  }

  /// Returns the expired messages that the log has or that were carried over, and some that can no longer be
  /// read: see forget_before.
  [[nodiscard]] const log::OffsetSet& expired() const { return expired_; }
  /// Returns the messages that have expired since the last call. They are in expired().
  [[nodiscard]] log::OffsetSet take_fresh() { return std::exchange(fresh_, {}); }
  [[nodiscard]] bool has_fresh() const { return !fresh_.empty(); }
  /// Forgets messages below `first`, which the log no longer has, but for those that were carried over. Those
  /// that were carried over, and are gone now, are forgotten by and by: in each call a few.
  void forget_before(Offset first);
  /// Returns the offset of the last call of forget_before.
  [[nodiscard]] Offset forgotten_before() const { return forgotten_before_; }

  /// Messages of which all have expired, or none, as far as is known.
  struct Part {
    Offset end;
    bool expired = false;
  };
  /// Returns the part that begins with the message at `offset`.
  [[nodiscard]] Part part_at(Offset offset) const {
    constexpr Offset last{std::numeric_limits<std::uint64_t>::max()};
    if (expired_.empty()) return {last, false};
    const auto run = expired_.first_behind(offset);
    if (!run) return {last, false};
    return offset < run->begin ? Part{run->begin, false} : Part{run->end, true};
  }
  /// Finds the messages of a batch that have expired by now, and adds them to expired(). `range`: the
  /// messages that are about to be delivered; those outside may be left out. Takes constant time unless some
  /// may be in the last half second of their life. Errors: limit_reached if there is no memory to unpack the
  /// batch.
  Result<void> check(const BatchView& batch, OffsetRange range, Timestamp wall);

  /// Returns an offset below which no stored message has a time to live of its own. Nothing: no stored
  /// message has one.
  [[nodiscard]] std::optional<Offset> first_noted() const;
  /// Returns true if a message with a time of its own was found.
  [[nodiscard]] bool has_own() const { return has_own_; }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const {
    return times_.bytes() + expired_.bytes() + fresh_.bytes() + unread_.bytes() + again_.bytes();
  }

 private:
  void expire(OffsetRange range);
  Offset expire_some(OffsetRange range, std::size_t parts_max);
  Offset expire_stored(OffsetRange range, std::size_t& parts_left);
  void forget_gone(Offset first);
  [[nodiscard]] Offset lowest_stored() const;
  bool extend_prefix(Timestamp wall, SteadyTime now);
  bool note_unlisted(Timestamp wall);
  void was_read(OffsetRange range);
  bool read_noted(Timestamp wall, SteadyTime now);
  [[nodiscard]] bool index(const BatchView& batch, OffsetRange range, Timestamp wall);
  Result<void> check_records(const BatchView& batch, Timestamp wall);

  log::BatchLog& log_;
  std::int64_t ttl_ms_ = 0;
  Offset prefix_;  // all below have expired by the topic's time, or can no longer be read
  std::optional<Timestamp> prefix_due_;  // when the message at prefix_ expires by it; nothing: not known
  SteadyTime prefix_again_{};            // the log was unavailable: do not read at prefix_ before this time
  log::OffsetSet unread_;                // noted, and not in times_ yet
  log::OffsetSet again_;                 // of unread_: only the times up to again_until_ are not in times_
  Timestamp again_until_;
  ExpiryTimes times_;
  log::OffsetSet expired_;
  log::OffsetSet fresh_;
  Offset forgotten_before_;
  Offset gone_passed_;  // forget_gone continues here
  bool has_own_ = false;
  OffsetRange own_{};  // from the first to the last message that is known to have a time of its own
  bool is_pending_ =
      false;  // the store reports when noted messages can be read, and the topic dispatches then
  SteadyTime read_again_{};  // the log was unavailable: do not read noted messages before this time
  // The batch that was checked last by its records, and when a further message of it may expire.
  OffsetRange checked_{};
  Timestamp checked_until_;
  Timestamp checked_at_;
};

}  // namespace lightq::broker
