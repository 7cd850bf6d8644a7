/// The expired messages of one group: a view of its topic's, and those that waited in the group. Layer:
/// delivery.
#pragma once

#include <cstdint>
#include <limits>

#include <lightq/base/types.hpp>

#include "delivery/expiry/drop_counts.hpp"
#include "delivery/expiry/expired_runs.hpp"
#include "delivery/expiry/expiry_index.hpp"
#include "delivery/state/set_merge.hpp"
#include "log/offsets/offset_set.hpp"

namespace lightq::broker {

/// Knows the topic's expired messages, and keeps the facts about them that belong to the group. Messages at
/// the group's position and behind it are in the topic's index alone. The group passes them when it comes to
/// them; until then their number is computed. GroupMessages owns it. Thread: the reactor's.
class GroupExpiry {
 public:
  /// Sets the topic's expired messages; null: none expires. Lifetime: until the next call.
  void set_index(const ExpiryIndex* index) { index_ = index; }
  [[nodiscard]] const ExpiryIndex* index() const { return index_; }
  /// Keeps expired messages for the dead-letter topic: they are dead, not finished.
  void set_keeps(bool keeps) { keeps_ = keeps; }
  [[nodiscard]] bool keeps() const { return keeps_; }

  /// Returns how many messages of `range` have expired.
  [[nodiscard]] std::uint64_t in(OffsetRange range) const {
    return index_ == nullptr || range.end <= range.begin ? 0 : index_->expired().count_in(range);
  }
  /// Returns how many messages from `offset` on have expired.
  [[nodiscard]] std::uint64_t from(Offset offset) const {
    return in({offset, {std::numeric_limits<std::uint64_t>::max()}});
  }

  /// Counts messages ahead of the group that the log has dropped; see dropped_in.
  [[nodiscard]] DropCounts dropped(OffsetRange range, const log::OffsetSet* carried) const {
    return dropped_in(range, carried, index_ == nullptr ? nullptr : &index_->expired(), keeps_);
  }

  /// Counts messages that are not counted by the group's reader: those that waited for another delivery.
  void count(std::uint64_t messages) { counted_ += messages; }
  /// Returns the last messages that ended in the group because they had expired, and did not become dead.
  [[nodiscard]] ExpiredRuns& runs() { return runs_; }
  [[nodiscard]] std::uint64_t counted() const { return counted_; }

  /// Takes messages of the topic that have expired since the last call. `any_waits`: messages wait in the
  /// group, and some of these may be among them.
  void note(const log::OffsetSet& fresh, bool any_waits) {
    if (!any_waits) {
      expiring_.clear();
    } else if (expiring_.empty()) {
      expiring_ = fresh;
    } else {
      add_all(expiring_, fresh);
    }
  }
  /// Returns expired messages, of which some may wait in the group.
  [[nodiscard]] log::OffsetSet& expiring() { return expiring_; }

 private:
  const ExpiryIndex* index_ = nullptr;
  bool keeps_ = false;
  std::uint64_t counted_ = 0;
  ExpiredRuns runs_;
  log::OffsetSet expiring_;
};

}  // namespace lightq::broker
