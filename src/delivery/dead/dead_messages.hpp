/// The dead messages of a group: parked, or waiting for their transfer. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/attempts/first_failures.hpp"
#include "delivery/dead/dead_message.hpp"
#include "delivery/dead/outbox.hpp"
#include "delivery/state/delivery_counts.hpp"
#include "delivery/state/delivery_failure.hpp"
#include "log/offsets/offset_set.hpp"
#include "log/saved_state/unfinished.hpp"

namespace lightq::broker {

/// A death of messages that die together.
struct Death {
  DeathCause cause = DeathCause::attempts;
  std::uint32_t attempts = 0;
  Timestamp time;
  std::string reason;
};

/// Keeps the dead messages of a group with their cause and attempts, in sets of offsets, and the records of
/// at most DeathRecord::records_max of them. No message is parked and in the outbox. Also keeps when messages
/// failed for the first time that are not dead.
/// A copy costs time by the number of sets, of records and of messages in the outbox; it may be read and
/// destroyed on another thread. RedeliveryQueue owns it. Thread: the reactor's.
class DeadMessages {
 public:
  /// Adds messages. If the outbox is full, they are parked. Requires: they are not dead.
  void add(OffsetRange range, const Death& death, DeadState state);
  /// Collects the dead messages from `from` on that the filter means, in ascending order, until at most
  /// `parts_max` parts were visited. `changing`: without messages under way to the dead-letter topic. Returns
  /// the offset at which to continue, or nothing at the end.
  [[nodiscard]] std::optional<Offset> find(const DeadFilter& filter, Offset from, std::size_t parts_max,
                                           bool changing, std::vector<OffsetRange>& found) const;
  /// Removes messages that `find` has found. They are not dead any more.
  void remove(std::span<const OffsetRange> found);
  /// See Outbox::renew.
  void renew() { outbox_.renew(); }
  /// Begins transfers; see Outbox::begin.
  std::size_t begin(std::size_t most) { return outbox_.begin(most); }
  /// Ends the transfer of the first message of the outbox, which is finished.
  void done();
  /// Parks the first message of the outbox; see Outbox::give_up.
  void give_up();
  /// Parks all messages of the outbox. The incarnation of the outbox ends if some are under way.
  void park_all();
  /// Removes messages below `first`, which the log no longer has. Returns how many were dead.
  std::uint64_t give_up_before(Offset first);
  void clear();
  /// Replaces all by saved messages. `attempts`: of all messages that were saved.
  void restore(const log::SavedDead& saved, const DeliveryCounts& attempts);
  /// Returns the form in which the messages in `bounds` are saved, without their attempts. First failures are
  /// saved of messages that are in `living`.
  [[nodiscard]] log::SavedDead saved(OffsetRange bounds, const log::OffsetSet& living) const;

  [[nodiscard]] bool empty() const { return parked_.empty() && waiting_.empty(); }
  /// Returns the lowest offset. Requires: not empty().
  [[nodiscard]] Offset first() const {
    if (waiting_.empty()) return parked_.first();
    return parked_.empty() ? waiting_.first() : std::min(parked_.first(), waiting_.first());
  }
  [[nodiscard]] const log::OffsetSet& parked() const { return parked_; }
  /// Returns the messages of the outbox.
  [[nodiscard]] const log::OffsetSet& waiting() const { return waiting_; }
  [[nodiscard]] const Outbox& outbox() const { return outbox_; }
  [[nodiscard]] const DeliveryCounts& attempts() const { return attempts_; }
  [[nodiscard]] FirstFailures& first_failures() { return first_failures_; }
  [[nodiscard]] const FirstFailures& first_failures() const { return first_failures_; }
  /// Returns the dead message at `offset`. Requires: it is dead.
  [[nodiscard]] DeadMessage at(Offset offset) const;
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return parked_.count_in(range) + waiting_.count_in(range);
  }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const;

 private:
  using Records = std::map<Offset, std::shared_ptr<const DeathRecord>>;

  void record(OffsetRange range, const Death& death);
  void forget(OffsetRange range);

  log::OffsetSet parked_;
  log::OffsetSet waiting_;
  log::OffsetSet rejected_;  // those with the cause `rejected`
  DeliveryCounts attempts_;
  Records records_;
  std::size_t reason_bytes_ = 0;  // of records_
  Outbox outbox_;
  FirstFailures first_failures_;
};

}  // namespace lightq::broker
