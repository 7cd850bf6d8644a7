/// Takes messages back from members: after their deadline, for a revocation, from silent clients.
/// Layer: delivery.
#include "delivery/group_returns.hpp"

#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
// The most work, and the most ranges, of taking messages back from silent members in a call: about a
// millisecond.
constexpr std::uint64_t silent_work_max = 256 * limits::KiB;
constexpr std::size_t silent_ranges_max = 1024;
// More ranges of overdue messages than a member needs, unless its acknowledgements are very late.
constexpr std::size_t overdue_ranges_many = 64;
}  // namespace

void GroupReturns::requeue(CountedRanges ranges, const Return& how) {
  if (ranges.empty()) return;
  prepare(ranges);
  parts_.failures.put_back(ranges, how);
}

void GroupReturns::bury(CountedRanges ranges, const std::string& reason, Timestamp wall) {
  if (ranges.empty()) return;
  prepare(ranges);
  parts_.failures.bury(ranges, reason, wall);
}

/// Sorts ranges to requeue, and counts the dropped messages in them.
void GroupReturns::prepare(CountedRanges& ranges) {
  sort_by_offset(ranges);
  if (parts_.terms.holds) parts_.drops.count_requeued(ranges);
}

/// Forgets overdue messages that the group has finished since, if the member has many. Called before new ones
/// become overdue. So a consumer that is slow or silent again and again does not keep one range for each
/// time.
void GroupReturns::forget_settled(GroupMember& member) {
  if (member.has_overdue(overdue_ranges_many)) member.forget_overdue(parts_.messages.committed());
}

void GroupReturns::take_overdue(GroupMember& member, SteadyTime now, std::size_t& ranges_left) {
  Revocation revocation(member, RevokeCause::processing_timeout);
  forget_settled(member);
  CountedRanges expired;
  member.expire(now, ranges_left, [&](OffsetRange range, const Delivery& delivery) {
    expired.push_back({range, delivery.count});
    revocation.add(range);
  });
  requeue(std::move(expired), {.cause = ReturnCause::timed_out, .now = now});
  revocation.tell();
}

void GroupReturns::acknowledge_overdue(GroupMember& member, OffsetRange range, std::uint32_t hand_out,
                                       LateRequests& late) {
  if (member.lease().is_on()) return late.add_overdue(range, hand_out);
  member.take_overdue(range, hand_out, [&](OffsetRange overdue) {
    Offset at = overdue.begin;
    for (const OffsetRange& waiting : parts_.messages.redelivery().finish(overdue, late.parts_left())) {
      parts_.standing.acknowledged += distance(waiting.begin, waiting.end);
      late.add({at, waiting.begin});
      at = waiting.end;
    }
    late.add({at, overdue.end});
  });
}

/// Requeues the member's messages for which `picks(delivery)` returns true. The present delivery does not
/// count. Tells the member's consumer.
template <typename Picks>
void GroupReturns::take_back(GroupMember& member, RevokeCause cause, SteadyTime now, Picks&& picks) {
  Revocation revocation(member, cause);
  CountedRanges returned;
  forget_settled(member);
  member.take_back(picks, [&](OffsetRange range, const Delivery& delivery) {
    returned.push_back({range, deliveries_of(range, delivery, false)});
    revocation.add(range);
  });
  requeue(std::move(returned), {.cause = ReturnCause::unstarted, .now = now, .revoked = true});
  revocation.tell();
}

void GroupReturns::tell_end(GroupMember& member, RevokeCause cause) {
  if (!member.lease().is_on()) return;
  Revocation revocation(member, cause);
  member.outstanding().for_each([&](OffsetRange range, const Delivery&) { revocation.add(range); });
  revocation.tell();
}

/// Visits only members that have something, because thousands may have nothing.
void GroupReturns::forget_all(RevokeCause cause) {
  GroupStanding& standing = parts_.standing;
  uncounted_ = 0;
  while (!standing.roll.overdue.empty()) {
    TurnWork::add(TurnWork::member_visited);
    (*standing.roll.overdue.begin())->forget_overdue();
  }
  while (!standing.fronts.empty()) {
    TurnWork::add(TurnWork::member_visited);
    GroupMember& member = *standing.fronts.first().member;
    Revocation revocation(member, cause);
    member.take_back([](const Delivery&) { return true; },
                     [&](OffsetRange range, const Delivery&) { revocation.add(range); });
    // A late acknowledgement is ignored without leases, because the message may wait at the new position.
    if (!member.lease().is_on()) member.forget_overdue();
    revocation.tell();
  }
}

bool GroupReturns::take_back_from_silent(const std::vector<RecordSink*>& plain, SteadyTime now) {
  if (!any_can_take(plain)) return false;
  const std::uint64_t work_from = TurnWork::bytes();
  const auto& silent = parts_.standing.roll.silent;
  std::size_t ranges_left = silent_ranges_max;
  while (!silent.empty()) {
    if (TurnWork::bytes() - work_from > silent_work_max) return true;
    TurnWork::add(TurnWork::member_visited);
    GroupMember& member = **silent.begin();
    take_back(member, RevokeCause::silent, now, [&](const Delivery& delivery) {
      if (delivery.started || ranges_left == 0) return false;
      --ranges_left;
      return true;
    });
    if (ranges_left == 0) return true;
    member.set_silent(false);  // it has nothing more to take back
  }
  return false;
}

/// Returns true if some consumer can take messages. Takes members out of the turn order that cannot.
bool GroupReturns::any_can_take(const std::vector<RecordSink*>& plain) {
  auto& turns = parts_.standing.turns;
  while (turns.waiting() > 0) {
    GroupMember& member = turns.front();
    if (member.can_take()) return true;
    member.rest();
  }
  return std::ranges::any_of(plain,
                             [](const RecordSink* consumer) { return consumer->unsent_messages() == 0; });
}

}  // namespace lightq::broker
