/// Commands on a group's dead messages, and their transfer to the dead-letter topic. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/dead/dead_message.hpp"
#include "delivery/dead/dead_messages.hpp"

namespace lightq::broker {

class GroupFailures;
class GroupMessages;

/// A view of the dead messages of one group. ConsumerGroup::dead() makes it for a call or a turn; it holds
/// nothing. Each change makes the group's version differ, so that the next save contains it. The caller of
/// a function that changes something must let the topic dispatch soon.
///
/// Commands: call `count`, `retry` or `purge` with the lowest offset, and again with the result's `next`
/// until there is none. They ignore the filter's key: to select by key, call `find`, read the messages, and
/// pass those that have it. Messages under way to the dead-letter topic are left out by `retry` and `purge`.
///
/// Transfer, for one caller at a time:
/// 1. `begin` gives the lowest messages numbers.
/// 2. Save the group's cursor, and wait until it is on disk (for a durable topic).
/// 3. Append the messages of `under_way` to the target in order, each with its number and incarnation().
/// 4. Call `done` for each that the target has, in order. Its message is finished.
/// After a start, the messages under way are those of the last save: continue with step 3. If incarnation()
/// is not the one of step 1, the messages are not under way any more (seek, purge): begin anew. Another
/// dead-letter topic does not end the incarnation: its messages may be in its own target(), which must be
/// asked first. Thread: the reactor's.
class GroupDead {
 public:
  GroupDead(GroupMessages& messages, GroupFailures& failures) : messages_(messages), failures_(failures) {}

  [[nodiscard]] const DeadMessages& messages() const;
  [[nodiscard]] std::uint64_t parked() const { return messages().parked().size(); }
  [[nodiscard]] std::uint64_t waiting() const { return messages().waiting().size(); }

  // Commands.

  /// Lists dead messages from offset `from` on, at most `most` of them.
  [[nodiscard]] DeadList list(const DeadFilter& filter, Offset from, std::size_t most) const;
  /// Lists the messages in `found`, which are dead.
  [[nodiscard]] std::vector<DeadMessage> list(std::span<const OffsetRange> found) const;
  /// Finds dead messages for `list` or, with `changing`, for `retry` or `purge`, from offset `from` on.
  [[nodiscard]] DeadFound find(const DeadFilter& filter, Offset from, bool changing) const;
  /// Counts dead messages, and changes nothing.
  [[nodiscard]] DeadPiece count(const DeadFilter& filter, Offset from) const;
  /// Makes dead messages ready, as if they had never failed.
  DeadPiece retry(const DeadFilter& filter, Offset from);
  /// Requires: `find` has found these messages since the last change.
  void retry(std::span<const OffsetRange> found);
  /// Protects messages from expiry until they are finished or dead. Requires: the group has passed them.
  void protect(OffsetRange range);
  /// Makes messages ready, as if they had never been delivered; those that have expired end. Requires: the
  /// group has passed them, and they wait for nothing.
  void revive(const CountedRanges& messages);
  /// Ends messages before `first` that wait and have expired; see ExpiredMessages::end_before.
  void end_expired_before(Offset first);
  /// Finishes dead messages.
  DeadPiece purge(const DeadFilter& filter, Offset from);
  /// Requires: as for `retry`.
  void purge(std::span<const OffsetRange> found);

  // Transfer.

  [[nodiscard]] std::uint64_t incarnation() const { return messages().outbox().incarnation(); }
  /// Returns the topic that may have letters of the incarnation; 0: there is no incarnation.
  [[nodiscard]] TopicId target() const { return messages().outbox().target(); }
  /// Begins transfers of messages below `end` to `target`; see Outbox::begin.
  std::size_t begin(std::size_t most, TopicId target,
                    Offset end = {std::numeric_limits<std::uint64_t>::max()});
  /// Returns the messages under way, in order.
  [[nodiscard]] std::vector<Transfer> under_way() const;
  /// Finishes the first message under way, if it has this number in this incarnation. Otherwise does nothing
  /// and returns false.
  bool done(std::uint64_t incarnation, std::uint64_t number);
  /// Finishes the first message under way as `done` does, and counts it as lost: the target does not have it,
  /// because it can no longer be read. Returns as `done` does.
  bool lose(std::uint64_t incarnation, std::uint64_t number);
  /// Parks the first message under way, if it has this number in this incarnation: the target refuses it for
  /// good. Then no message is under way, and a new incarnation begins. Requires: the target has none of those
  /// under way. Otherwise does nothing and returns false.
  bool give_up(std::uint64_t incarnation, std::uint64_t number);
  /// Begins a new incarnation. Messages under way wait again, or are parked if the group has no dead-letter
  /// topic. Requires: the target has none of those under way, or does not exist any more.
  void renew();
  /// Parks messages that wait for no topic, but for those under way. Called after a start, when the settings
  /// are known: the restored messages may be from before the group lost its dead-letter topic.
  void park_without_target();
  /// Keeps the reason why transfers do not go on, for the statistics; empty: they do.
  void set_trouble(std::string why);

 private:
  [[nodiscard]] bool is_first(std::uint64_t incarnation, std::uint64_t number) const;

  GroupMessages& messages_;
  GroupFailures& failures_;
};

}  // namespace lightq::broker
