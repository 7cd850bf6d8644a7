/// Dispatch, acknowledgement and redelivery in a consumer group. Layer: delivery.
#include "delivery/consumer_group.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

#include "delivery/undone_ranges.hpp"

namespace lightq::broker {

namespace {
constexpr std::uint64_t redelivered_per_pump = 4096;          // messages, to outlets
constexpr std::size_t outlets_turn_bytes = 16 * limits::KiB;  // while there are members
// Unfinished ranges that are walked for each finished range that is saved.
constexpr std::size_t undone_ranges_walked_per_range = 4;
constexpr auto held_back_retry = std::chrono::seconds(1);
constexpr Offset no_end{std::numeric_limits<std::uint64_t>::max()};
}  // namespace

// --- Consumers ---

void ConsumerGroup::detach(RecordSink& outlet) {
  const auto found = std::find(outlets_.begin(), outlets_.end(), &outlet);
  if (found == outlets_.end()) return;
  outlets_.erase(found);
  outlet_turn_ = 0;
  for (const Offset offset : outlet.unsent()) come_back({offset, offset + 1}, 1);
}

GroupMember& ConsumerGroup::attach(SessionConsumer& consumer, const session::ConsumeOpen& asked,
                                   std::uint64_t user) {
  members_.push_back(std::make_unique<GroupMember>(consumer, asked, limits_, standing_, user));
  return *members_.back();
}

void ConsumerGroup::detach(GroupMember& member) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& owned) { return owned.get() == &member; });
  if (found == members_.end()) return;
  member.outstanding().for_each(
      [&](OffsetRange range, const Handing& handing) { come_back(range, handing.delivery); });
  members_.erase(found);
}

std::size_t ConsumerGroup::members_of(std::uint64_t user) const {
  const auto counted = roll_.members_of.find(user);
  return counted == roll_.members_of.end() ? 0 : counted->second;
}

SessionConsumer* ConsumerGroup::a_consumer() const {
  for (const auto& member : members_) {
    if (member->consumer() != nullptr) return member->consumer();
  }
  return nullptr;
}

void ConsumerGroup::come_back(OffsetRange range, std::uint32_t deliveries) {
  count_if_dropped(range);
  returned_.add(range, deliveries);
  charge_.set(returned_.ranges());
}

/// A message that the log dropped while a consumer had it becomes lost when it is requeued. A group that does
/// not hold the log counts that only for itself.
void ConsumerGroup::count_if_dropped(OffsetRange range) {
  if (terms_.holds && range.begin < drops_.before)
    drops_.count += distance(range.begin, std::min(range.end, drops_.before));
}

// --- Requests of a member ---

namespace {
/// Calls `change` for each range in turn. Returns false once the member's outstanding messages are in too
/// many ranges.
template <typename Change>
bool for_ranges(GroupMember& member, const std::vector<OffsetRange>& ranges, Change&& change) {
  for (const OffsetRange& range : ranges) {
    const std::size_t before = member.outstanding().ranges();
    change(range);
    if (member.outstanding().ranges() > before && member.is_out_of_ranges()) return false;
  }
  return true;
}
}  // namespace

bool ConsumerGroup::acknowledge(GroupMember& member, const session::Acknowledge& acknowledged) {
  std::vector<OffsetRange> late;
  const auto done_with = [&](OffsetRange range) {
    member.cut(range);
    if (member.has_overdue()) acknowledge_overdue(member, range, late);
  };
  bool fits = true;
  if (acknowledged.before) {
    done_with({Offset{0}, *acknowledged.before});
  } else {
    fits = for_ranges(member, acknowledged.ranges, done_with);
  }
  if (!late.empty() && member.consumer() != nullptr) member.consumer()->late(late);
  return fits;
}

/// Handles the acknowledgement of messages that were taken back from the member. Messages not delivered to
/// another consumer since are finished after all. The others are added to `late`.
void ConsumerGroup::acknowledge_overdue(GroupMember& member, OffsetRange range,
                                        std::vector<OffsetRange>& late) {
  const auto add = [&](OffsetRange part) {
    if (part.begin >= part.end) return;
    if (!late.empty() && late.back().end == part.begin) {
      late.back().end = part.end;
    } else {
      late.push_back(part);
    }
  };
  member.take_overdue(range, [&](OffsetRange overdue) {
    Offset at = overdue.begin;
    returned_.take_ready(overdue, [&](OffsetRange waiting) {
      add({at, waiting.begin});
      at = waiting.end;
    });
    add({at, overdue.end});
  });
  charge_.set(returned_.ranges());
}

bool ConsumerGroup::reject(GroupMember& member, const session::Reject& rejected, SteadyTime now) {
  const SteadyTime due = rejected.ms != 0 ? deadline_after(now, rejected.ms) : now;
  return for_ranges(member, rejected.ranges, [&](OffsetRange range) {
    member.cut(range, [&](OffsetRange part, const Handing& handing) {
      if (rejected.ms == 0) return come_back(part, handing.delivery);
      count_if_dropped(part);
      returned_.add_delayed(part, handing.delivery, due);
      charge_.set(returned_.ranges());
      wait_until(due);
    });
  });
}

bool ConsumerGroup::extend(GroupMember& member, const session::Extend& extended, SteadyTime now) {
  const SteadyTime deadline = deadline_after(now, extended.ms);
  const bool fits =
      for_ranges(member, extended.ranges, [&](OffsetRange range) { member.extend(range, deadline); });
  wait_until(member.next_deadline());
  return fits;
}

void ConsumerGroup::seek(Offset offset) {
  walk_.seek(offset);
  read_again_ = {};
  returned_.clear();
  charge_.set(0);
  // Visits only members that have something, because thousands may have nothing.
  const auto clear = [](GroupMember& member) {
    TurnWork::add(TurnWork::member_visited);
    member.clear();
  };
  while (!standing_.fronts.empty()) clear(*standing_.fronts.first().member);
  while (!roll_.overdue.empty()) clear(**roll_.overdue.begin());
  for (RecordSink* const outlet : outlets_) outlet->forget_unsent();
}

// --- Dispatch ---

ConsumerGroup::Handed ConsumerGroup::pump(log::BatchLog& log, std::size_t bytes_max, SteadyTime now) {
  Handed handed;
  tend(now);
  if (paused_ || consumers() == 0) return handed;
  if (read_again_ <= now) hand_out(log, bytes_max, now, handed);
  if (unavailable() != nullptr) wait_until(read_again_);  // needed too if an earlier deadline has just passed
  for (RecordSink* const outlet : outlets_) outlet->flush();
  redelivered_ += handed.redelivered;
  charge_.set(returned_.ranges());
  handed.held_back = !std::exchange(held_back_, is_in_pieces()) && held_back_;
  // Other groups can free ranges without any event in this group, so check again later.
  if (held_back_) wait_until(now + held_back_retry);
  return handed;
}

void ConsumerGroup::hand_out(log::BatchLog& log, std::size_t bytes_max, SteadyTime now, Handed& handed) {
  if (members_.empty()) {
    pump_outlets(log, bytes_max, handed);
  } else {
    bool going = true;
    while (going && handed.cost() < bytes_max) going = turn_of_both(log, bytes_max, now, handed);
    handed.more |= going;
    for (GroupMember* const member : unflushed_) member->flush();
    unflushed_.clear();
  }
  read_again_ = unavailable() != nullptr ? read_again_after(now) : SteadyTime{};
}

const Error* ConsumerGroup::unavailable() const {
  if (consumers() == 0) return nullptr;
  const Error* const returned = returned_.unavailable();
  return returned != nullptr ? returned : walk_.unavailable();
}

/// Returns true if newer messages may be delivered. The redelivery queue must have no ready messages, and its
/// number of ranges must be below the limits, because it must not grow.
bool ConsumerGroup::may_go_on() const {
  return !returned_.ready() && !is_in_pieces();
}

bool ConsumerGroup::hand_over(Offset offset, ByteView payload) {
  const std::size_t count = outlets_.size();
  for (std::size_t tried = 0; tried < count; ++tried) {
    RecordSink* const outlet = outlets_[outlet_turn_];
    outlet_turn_ = outlet_turn_ + 1 < count ? outlet_turn_ + 1 : 0;
    if (outlet->offer(offset, payload)) return true;
  }
  return false;
}

/// Delivers redeliveries to outlets. Returns false if some are left, so that nothing newer is delivered
/// before them.
bool ConsumerGroup::pump_returned_to_outlets(log::BatchLog& log, Handed& handed) {
  for (std::uint64_t left = redelivered_per_pump; left > 0;) {
    const auto returned = returned_.next_slice(log, left, limits::message_bytes_max_max, {});
    if (!returned) return may_go_on();
    const OffsetRange range = returned->slice.range();
    const AttributeKinds kinds = returned->slice.batch.kinds();
    const std::byte* at = returned->slice.records.data();
    Offset offset = range.begin;
    for (; offset < range.end; offset = offset + 1) {
      const auto length = load_little_endian<std::uint32_t>(at);
      const ByteView payload = payload_of(kinds, ByteView(at + sizeof length, length));
      if (!hand_over(offset, payload)) break;
      at += record_bytes(length);
      handed.bytes += payload.size();
      ++(returned->deliveries == 0 ? handed.messages : handed.redelivered);
      --left;
    }
    returned_.taken({range.begin, offset});
    if (offset < range.end) return false;
  }
  handed.more = true;
  return false;
}

void ConsumerGroup::pump_outlets(log::BatchLog& log, std::size_t bytes_max, Handed& handed) {
  if (!may_go_on() && !pump_returned_to_outlets(log, handed)) return;
  handed.more = walk_.walk(log, bytes_max, [&](Offset offset, ByteView payload) {
    if (!hand_over(offset, payload)) return false;
    ++handed.messages;
    handed.bytes += payload.size();
    return true;
  });
}

bool ConsumerGroup::turn_of_outlets(log::BatchLog& log, Handed& handed) {
  const std::uint64_t before = handed.messages + handed.redelivered;
  pump_outlets(log, outlets_turn_bytes, handed);
  return handed.messages + handed.redelivered > before;
}

/// Gives members and outlets a turn each. Returns false if neither took a message. The kind that goes first
/// alternates: otherwise one kind would take every message of a log that has few at a time.
bool ConsumerGroup::turn_of_both(log::BatchLog& log, std::size_t bytes_max, SteadyTime now, Handed& handed) {
  if (outlets_.empty()) return turn_of_members(log, bytes_max, now, handed);
  const bool outlets_begin = outlets_begin_;
  bool any = outlets_begin ? turn_of_outlets(log, handed) : turn_of_members(log, bytes_max, now, handed);
  if (any) outlets_begin_ = !outlets_begin;
  any |= outlets_begin ? turn_of_members(log, bytes_max, now, handed) : turn_of_outlets(log, handed);
  return any;
}

/// Delivers one slice to each member that takes one. Returns false if no member took one.
bool ConsumerGroup::turn_of_members(log::BatchLog& log, std::size_t bytes_max, SteadyTime now,
                                    Handed& handed) {
  bool any = false;
  auto& turns = standing_.turns;
  for (std::size_t asked = turns.waiting(); asked > 0 && handed.cost() < bytes_max; --asked) {
    GroupMember& member = turns.front();
    ++standing_.members_asked;
    if (!member.can_take()) {
      member.rest();
      continue;
    }
    if (!hand_slice(log, member, now, handed)) return any;  // it keeps its turn until there is a message
    any = true;
    turns.next();
  }
  return any;
}

/// Delivers one slice to the member. Returns false if there is nothing to deliver.
bool ConsumerGroup::hand_slice(log::BatchLog& log, GroupMember& member, SteadyTime now, Handed& handed) {
  if (returned_.ready()) {
    const auto returned =
        returned_.next_slice(log, member.messages_left(), member.bytes_left(), member.codecs());
    if (returned) {
      returned_.taken(returned->slice.range());
      const auto taken =
          deliver(member, {returned->slice, returned->deliveries + 1, take_untold_loss()}, now);
      (returned->deliveries == 0 ? handed.messages : handed.redelivered) += taken;
      handed.bytes += returned->slice.message_bytes();
      return true;
    }
  }
  if (!may_go_on()) return false;
  const auto slice =
      walk_.next_slice(log, no_end, member.messages_left(), member.bytes_left(), member.codecs());
  if (!slice) return false;
  handed.messages += deliver(member, {*slice, 1, take_untold_loss()}, now);
  handed.bytes += slice->message_bytes();
  return true;
}

/// Delivers the slice and returns how many messages the member took. The others are requeued.
std::uint32_t ConsumerGroup::deliver(GroupMember& member, const DeliveredSlice& handed, SteadyTime now) {
  const OffsetRange range = handed.slice.range();
  if (!member.is_unflushed()) unflushed_.push_back(&member);
  const std::uint32_t taken = member.deliver(handed, now);
  if (taken < handed.slice.count) come_back({range.begin + taken, range.end}, handed.delivery - 1);
  wait_until(member.next_deadline());
  return taken;
}

/// Returns how many lost messages were not reported to a member yet. The next delivered slice reports them,
/// so each loss is reported once.
std::uint64_t ConsumerGroup::take_untold_loss() {
  const std::uint64_t lost = this->lost();
  const std::uint64_t untold = lost - loss_told_;
  loss_told_ = lost;
  return untold;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported for classes without virtual bases
struct ConsumerGroup::HotFields {
  static_assert(hot_fields_precede(
      offsetof(ConsumerGroup, returned_),
      {offsetof(ConsumerGroup, terms_), offsetof(ConsumerGroup, paused_), offsetof(ConsumerGroup, held_back_),
       offsetof(ConsumerGroup, outlets_begin_), offsetof(ConsumerGroup, next_timer_),
       offsetof(ConsumerGroup, read_again_), offsetof(ConsumerGroup, redelivered_),
       offsetof(ConsumerGroup, loss_told_), offsetof(ConsumerGroup, damage_taken_),
       offsetof(ConsumerGroup, outlets_), offsetof(ConsumerGroup, members_),
       offsetof(ConsumerGroup, unflushed_), offsetof(ConsumerGroup, standing_),
       offsetof(ConsumerGroup, charge_), offsetof(ConsumerGroup, walk_)}));
};
#pragma GCC diagnostic pop

void ConsumerGroup::fetch_ahead_for_input(unsigned step) const {
  if (members_.empty()) return;
  if (step == 0) return fetch_ahead(members_.data(), sizeof members_.front());
  if (step == 1) return fetch_ahead_hot(*members_.front());
  members_.front()->fetch_ahead_for_input();
}

void ConsumerGroup::expire(SteadyTime now) {
  next_timer_ = returned_.release(now);
  for (const auto& member : members_) {
    member->expire(now,
                   [&](OffsetRange range, const Handing& handing) { come_back(range, handing.delivery); });
    wait_until(member->next_deadline());
  }
}

// --- State ---

Offset ConsumerGroup::committed() const {
  Offset oldest = walk_.offset();
  if (const auto returned = returned_.first()) oldest = std::min(oldest, *returned);
  if (const auto outstanding = standing_.first()) oldest = std::min(oldest, *outstanding);
  for (const RecordSink* const outlet : outlets_) {
    if (const auto unsent = outlet->first_unsent()) oldest = std::min(oldest, *unsent);
  }
  return oldest;
}

std::vector<OffsetRange> ConsumerGroup::acknowledged(std::size_t ranges_max) const {
  std::vector<OffsetRange> acknowledged;
  UndoneRanges undone(returned_, standing_, outlets_);
  Offset done_from = committed();
  for (std::size_t walked = 0;; ++walked) {
    const auto range = undone.next();
    if (!range) break;
    // Ranges that do not fit are delivered again after a crash.
    if (acknowledged.size() == ranges_max || walked == ranges_max * undone_ranges_walked_per_range)
      return acknowledged;
    if (done_from < range->begin) acknowledged.push_back({done_from, range->begin});
    done_from = std::max(done_from, range->end);
  }
  if (committed() < done_from && done_from < next()) acknowledged.push_back({done_from, next()});
  return acknowledged;
}

void ConsumerGroup::restore(Offset committed, const std::vector<OffsetRange>& acknowledged) {
  Offset undone_from = committed;
  for (const OffsetRange& range : acknowledged) {
    if (undone_from < range.begin) returned_.add({undone_from, range.begin}, 0);
    undone_from = std::max(undone_from, range.end);
  }
  charge_.set(returned_.ranges());
  walk_.seek(undone_from);
}

WalkLoss ConsumerGroup::loss() const {
  WalkLoss loss = walk_.loss();
  loss += returned_.loss();
  return loss;
}

std::vector<OffsetRange> ConsumerGroup::take_damage() {
  // Damage is part of the loss. A group mostly has none that is new.
  if (lost() == std::exchange(damage_taken_, lost())) return {};
  auto damage = walk_.take_damage();
  const auto returned = returned_.take_damage();
  damage.insert(damage.end(), returned.begin(), returned.end());
  return damage;
}

std::uint64_t ConsumerGroup::unhanded_in(OffsetRange range) const {
  const std::uint64_t returned = returned_.messages_in(range);
  const Offset from = std::max(range.begin, next());
  return from < range.end ? returned + distance(from, range.end) : returned;
}

std::uint64_t ConsumerGroup::in_flight() const {
  std::uint64_t messages = standing_.messages;
  for (const RecordSink* const outlet : outlets_) messages += outlet->unsent_messages();
  return messages;
}

}  // namespace lightq::broker
