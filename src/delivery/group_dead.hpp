/// Commands on a group's dead messages, and their transfer to the dead-letter topic. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <lightq/base/types.hpp>

#include "delivery/dead/dead_message.hpp"
#include "delivery/dead/dead_messages.hpp"

namespace lightq::broker {

class GroupMessages;

/// A view of the dead messages of one group. ConsumerGroup::dead() makes it for a call or a turn; it holds
/// nothing. Each change makes the group's version differ, so that the next save contains it. The caller of
/// a function that changes something must let the topic dispatch soon.
///
/// Commands: call `count`, `retry` or `purge` with the lowest offset, and again with the result's `next`
/// until there is none. Messages under way to the dead-letter topic are left out by `retry` and `purge`.
///
/// Transfer, for one caller at a time:
/// 1. `begin` gives the first messages numbers.
/// 2. Save the group's cursor, and wait until it is on disk (for a durable topic).
/// 3. Append the messages of `under_way` to the target in order, each with its number and incarnation().
/// 4. Call `done` for each that the target has, in order. Its message is finished.
/// After a start, the messages under way are those of the last save: continue with step 3. If incarnation()
/// is not the one of step 1, the messages are not under way any more (seek, purge, another target): begin
/// anew. Thread: the reactor's.
class GroupDead {
 public:
  explicit GroupDead(GroupMessages& messages) : messages_(messages) {}

  [[nodiscard]] const DeadMessages& messages() const;
  [[nodiscard]] std::uint64_t parked() const { return messages().parked().size(); }
  [[nodiscard]] std::uint64_t waiting() const { return messages().waiting().size(); }

  // Commands.

  /// Lists dead messages from offset `from` on, at most `most` of them.
  [[nodiscard]] DeadList list(const DeadFilter& filter, Offset from, std::size_t most) const;
  /// Counts dead messages, and changes nothing.
  [[nodiscard]] DeadPiece count(const DeadFilter& filter, Offset from) const;
  /// Makes dead messages ready, as if they had never failed.
  DeadPiece retry(const DeadFilter& filter, Offset from);
  /// Finishes dead messages.
  DeadPiece purge(const DeadFilter& filter, Offset from);

  // Transfer.

  [[nodiscard]] std::uint64_t incarnation() const { return messages().outbox().incarnation(); }
  /// Begins transfers, so that at most `most` are under way. Returns how many are.
  std::size_t begin(std::size_t most);
  /// Returns the messages under way, in order.
  [[nodiscard]] std::vector<Transfer> under_way() const;
  /// Finishes the first message under way, if it has this number in this incarnation. Otherwise does nothing
  /// and returns false.
  bool done(std::uint64_t incarnation, std::uint64_t number);
  /// Parks the first message under way, if it has this number in this incarnation: the target refuses it for
  /// good. Then no message is under way. Requires: the target has none of those under way. Otherwise does
  /// nothing and returns false.
  bool give_up(std::uint64_t incarnation, std::uint64_t number);
  /// Begins a new incarnation. Does nothing while a message is under way.
  void renew();

 private:
  DeadPiece take(const DeadFilter& filter, Offset from, std::vector<OffsetRange>& removed);
  [[nodiscard]] bool is_first(std::uint64_t incarnation, std::uint64_t number) const;

  GroupMessages& messages_;
};

}  // namespace lightq::broker
