/// The dead messages of a group that wait for their transfer to the dead-letter topic. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>

#include <lightq/base/types.hpp>

#include "log/offsets/offset_set.hpp"
#include "log/saved_state/saved_dead.hpp"

namespace lightq::broker {

/// A set of messages. Some of them may be *under way*: their transfer has begun, and it is not known whether
/// the target has them. Only these have a transfer number. Numbers ascend without gaps within an
/// *incarnation* of the outbox, from 1 on. All letters of an incarnation go to one topic, its *target*, which
/// recognizes a repeated transfer by incarnation and number, if the outbox was saved with the number before
/// the transfer.
///
/// An incarnation ends when messages under way leave without being done: the group's position was moved, the
/// group was purged, or the caller knows that the target has none of them and calls `renew`. It is a random
/// number, so that a target never takes the messages of one incarnation for those of another.
///
/// Transfers begin with the lowest messages. So the messages that wait need no more memory than a set, a
/// change takes time by the number of runs, and a copy shares its memory. A plain value for one thread.
class Outbox {
 public:
  static constexpr std::size_t under_way_max = log::SavedDead::under_way_max;

  /// Returns all messages.
  [[nodiscard]] const log::OffsetSet& messages() const { return messages_; }
  [[nodiscard]] bool empty() const { return messages_.empty(); }
  /// Returns the messages under way, by their numbers.
  [[nodiscard]] const std::deque<Offset>& under_way() const { return under_way_; }
  /// Returns the messages under way as a set.
  [[nodiscard]] log::OffsetSet under_way_set() const;
  /// Returns the number of the first message under way, or the next one to be given.
  [[nodiscard]] std::uint64_t first_number() const { return first_number_; }
  /// Returns the incarnation. 0: none, because no transfer has begun yet.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  /// Returns the topic that may have letters of the incarnation; 0: there is no incarnation.
  [[nodiscard]] TopicId target() const { return target_; }

  void add(OffsetRange range) { messages_.add(range); }
  /// Begins the transfer of the lowest messages below `end`, so that at most `most` and `under_way_max` are
  /// under way to `target`. Begins none while messages are under way to another topic, and none to topic 0.
  /// Returns how many are under way.
  std::size_t begin(std::size_t most, TopicId target,
                    Offset end = {std::numeric_limits<std::uint64_t>::max()});
  /// Removes the first message under way, whose transfer is done. Requires: one is under way.
  Offset done();
  /// Removes the first message under way, which the target refuses for good. No message is under way then;
  /// the others wait again. Requires: one is under way; the target has none of them. The caller then calls
  /// `renew`, so that the number of the message is not used again.
  Offset give_up();
  /// Begins a new incarnation. Messages under way wait again. Requires: the target has none of them, or does
  /// not exist any more.
  void renew();
  /// Removes messages. Requires: none of them is under way.
  void remove(OffsetRange range) { messages_.remove(range); }
  /// Removes the messages below `end` that are not under way.
  void remove_before(Offset end);
  /// Removes the messages that are not under way, and returns them.
  log::OffsetSet take_waiting();
  /// Removes all messages. The incarnation ends if some were under way.
  void clear();
  /// Replaces all by saved messages.
  void restore(const log::SavedDead& saved);

 private:
  log::OffsetSet messages_;
  std::deque<Offset> under_way_;  // in messages_
  std::uint64_t first_number_ = 1;
  std::uint64_t incarnation_ = 0;
  TopicId target_;  // 0 if and only if incarnation_ is 0
};

}  // namespace lightq::broker
