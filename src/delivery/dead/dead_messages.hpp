/// The dead messages of a group: parked, or waiting for their transfer. Layer: delivery.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/attempts/first_failures.hpp"
#include "delivery/dead/dead_message.hpp"
#include "delivery/dead/death_records.hpp"
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
/// failed for the first time that are not dead. The records have a bound of their own (set_record_room).
/// A copy shares most memory, and costs time by copied_parts(); it may be read and destroyed on another
/// thread.
/// RedeliveryQueue owns it. Thread: the reactor's.
class DeadMessages {
 public:
  /// Adds messages. If the outbox is full, they are parked. Requires: they are not dead.
  void add(OffsetRange range, const Death& death, DeadState state);
  /// Collects the dead messages from `from` on that the filter means, regardless of their keys, in ascending
  /// order, until at most `parts_max` parts were visited. `changing`: without messages under way to the
  /// dead-letter topic. Returns the offset at which to continue, or nothing at the end.
  [[nodiscard]] std::optional<Offset> find(const DeadFilter& filter, Offset from, std::size_t parts_max,
                                           bool changing, std::vector<OffsetRange>& found) const;
  /// Removes messages that `find` has found. They are not dead any more.
  void remove(std::span<const OffsetRange> found);
  /// Protects living messages from expiry, because they were given back. `committed`: all messages below it
  /// are finished.
  void protect(OffsetRange range, Offset committed) {
    protected_.remove({Offset{0}, committed});
    protected_.add(range);
  }
  /// See Outbox::renew.
  void renew() { outbox_.renew(); }
  /// Begins transfers; see Outbox::begin.
  std::size_t begin(std::size_t most, TopicId target, Offset end) { return outbox_.begin(most, target, end); }
  /// Ends the transfer of the first message under way, which is finished.
  void done();
  /// Parks the first message under way; see Outbox::give_up.
  void give_up();
  /// Parks the messages of the outbox that are not under way. Returns false if there are none.
  bool park_waiting();
  /// Removes messages below `first`, which the log no longer has, but for those under way and those in
  /// `carried`. Looks only at messages at `from` or behind it. Returns how many.
  std::uint64_t give_up_before(Offset first, const log::OffsetSet& carried = {}, Offset from = {});
  void clear();
  /// Replaces all by saved messages. `attempts`: of all messages that were saved.
  void restore(const log::SavedDead& saved, const DeliveryCounts& attempts);
  /// Returns the form in which the messages in `bounds` are saved, without their attempts. `living`: the
  /// unfinished messages that are not dead. First failures and protection are saved of these only.
  [[nodiscard]] log::SavedDead saved(OffsetRange bounds, const log::OffsetSet& living) const;

  [[nodiscard]] bool empty() const { return parked_.empty() && outbox_.empty(); }
  /// Returns the lowest offset. Requires: not empty().
  [[nodiscard]] Offset first() const {
    if (outbox_.empty()) return parked_.first();
    return parked_.empty() ? waiting().first() : std::min(parked_.first(), waiting().first());
  }
  [[nodiscard]] const log::OffsetSet& parked() const { return parked_; }
  /// Returns the messages of the outbox.
  [[nodiscard]] const log::OffsetSet& waiting() const { return outbox_.messages(); }
  [[nodiscard]] const Outbox& outbox() const { return outbox_; }
  /// Returns the living messages that are protected from expiry. Finished messages may be among them.
  [[nodiscard]] const log::OffsetSet& protected_messages() const { return protected_; }
  [[nodiscard]] const DeliveryCounts& attempts() const { return attempts_; }
  [[nodiscard]] FirstFailures& first_failures() { return first_failures_; }
  [[nodiscard]] const FirstFailures& first_failures() const { return first_failures_; }
  /// Returns the dead message at `offset`. Requires: it is dead.
  [[nodiscard]] DeadMessage at(Offset offset) const;
  [[nodiscard]] std::uint64_t messages_in(OffsetRange range) const {
    return parked_.count_in(range) + waiting().count_in(range);
  }
  /// Returns how many messages of `range` are under way to the dead-letter topic and not in `carried`; null:
  /// it has none.
  [[nodiscard]] std::uint64_t under_way_in(OffsetRange range, const log::OffsetSet* carried) const;
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t bytes() const { return set_bytes() + record_bytes(); }
  /// Returns the part of bytes() of the sets of dead messages.
  [[nodiscard]] std::size_t set_bytes() const;
  /// Returns the other part of bytes(): records with their reasons, first failures, the outbox.
  [[nodiscard]] std::size_t record_bytes() const;
  /// Sets how many more bytes records may take. Without space, messages die without a record, and first
  /// failures are not noted.
  void set_record_room(std::size_t bytes) { record_room_ = bytes; }
  [[nodiscard]] bool has_record_room() const { return record_room_ != 0; }
  /// Returns the number of parts that a copy does not share: references to memory, and messages under way.
  [[nodiscard]] std::size_t copied_parts() const {
    return records_.pieces() + first_failures_.sets().size() + attempts_.sets().size() +
           outbox_.under_way().size();
  }

 private:
  void record(OffsetRange range, const Death& death);
  void forget(OffsetRange range);
  [[nodiscard]] DeathCause cause_of(Offset message) const;
  Offset add_died_in(const DeadFilter& filter, OffsetRange part, std::size_t& parts_max,
                     std::vector<OffsetRange>& found) const;

  log::OffsetSet parked_;
  log::OffsetSet rejected_;   // those with the cause `rejected`
  log::OffsetSet expired_;    // those with the cause `expired`
  log::OffsetSet protected_;  // see protected_messages()
  DeliveryCounts attempts_;
  DeathRecords records_;
  std::size_t record_room_ = std::numeric_limits<std::size_t>::max();
  Outbox outbox_;
  FirstFailures first_failures_;
};

}  // namespace lightq::broker
