/// Layer: delivery.
#include "broker/delivery/group.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <lightq/base/fetch_ahead.hpp>

namespace lightq::broker {

namespace {
constexpr std::uint64_t redelivered_per_pump = 4096;          // messages, to outlets
constexpr std::size_t outlets_turn_bytes = 16 * limits::KiB;  // while there are members
constexpr Offset no_end{std::numeric_limits<std::uint64_t>::max()};

std::uint64_t total(const WalkLoss& loss) {
  return loss.trimmed + loss.damaged;
}
}  // namespace

// --- Consumers ---

void Group::detach(Outlet& outlet) {
  const auto found = std::find(outlets_.begin(), outlets_.end(), &outlet);
  if (found == outlets_.end()) return;
  outlets_.erase(found);
  outlet_turn_ = 0;
  for (const Offset offset : outlet.unsent()) come_back({offset, offset + 1}, 1);
}

GroupMember& Group::attach(SessionConsumer& consumer, const session::ConsumeOpen& asked) {
  members_.push_back(std::make_unique<GroupMember>(consumer, asked, limits_));
  return *members_.back();
}

void Group::detach(GroupMember& member) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& owned) { return owned.get() == &member; });
  if (found == members_.end()) return;
  member.outstanding().for_each(
      [&](OffsetRange range, const Handing& handing) { come_back(range, handing.delivery); });
  members_.erase(found);
  if (member_turn_ >= members_.size()) member_turn_ = 0;
}

void Group::come_back(OffsetRange range, std::uint32_t deliveries) {
  count_if_dropped(range);
  returned_.add(range, deliveries);
}

/// What was dropped from the log while a consumer had it is lost now that it comes back; who does not hold
/// the log counts that for itself only.
void Group::count_if_dropped(OffsetRange range) {
  if (terms_.holds && range.begin < drops_.before)
    drops_.count += distance(range.begin, std::min(range.end, drops_.before));
}

// --- What a member says ---

void Group::acknowledge(GroupMember& member, const session::Acknowledge& acknowledged) {
  if (acknowledged.before) return member.outstanding().cut({Offset{0}, *acknowledged.before});
  for (const OffsetRange& range : acknowledged.ranges) member.outstanding().cut(range);
}

void Group::reject(GroupMember& member, const session::Reject& rejected, SteadyTime now) {
  const SteadyTime due = rejected.ms != 0 ? deadline_after(now, rejected.ms) : now;
  for (const OffsetRange& range : rejected.ranges) {
    member.outstanding().cut(range, [&](OffsetRange part, const Handing& handing) {
      if (rejected.ms == 0) return come_back(part, handing.delivery);
      count_if_dropped(part);
      returned_.add_delayed(part, handing.delivery, due);
      wait_until(due);
    });
  }
}

void Group::extend(GroupMember& member, const session::Extend& extended, SteadyTime now) {
  member.extend(extended.ranges, deadline_after(now, extended.ms));
  wait_until(member.next_deadline());
}

void Group::seek(Offset offset) {
  walk_.seek(offset);
  returned_.clear();
  for (const auto& member : members_) member->outstanding().clear();
  for (Outlet* const outlet : outlets_) outlet->forget_unsent();
}

// --- Handing out ---

Group::Handed Group::pump(log::Log& log, std::size_t bytes_max, SteadyTime now) {
  Handed handed;
  tend(now);
  if (paused_ || consumers() == 0) return handed;
  if (members_.empty()) {
    pump_outlets(log, bytes_max, handed);
  } else {
    bool going = true;
    while (going && handed.record_bytes() < bytes_max) {
      going = turn_of_members(log, bytes_max, now, handed);
      if (!outlets_.empty()) going |= turn_of_outlets(log, handed);
    }
    handed.more |= going;
    for (const auto& member : members_) member->flush();
  }
  for (Outlet* const outlet : outlets_) outlet->flush();
  redelivered_ += handed.redelivered;
  handed.held_back = !std::exchange(held_back_, is_in_pieces()) && held_back_;
  return handed;
}

/// Nothing newer is handed out before what came back; nor while that is in so many pieces that their number
/// must not grow.
bool Group::may_go_on() const {
  return !returned_.ready() && !is_in_pieces();
}

bool Group::hand_over(Offset offset, ByteView payload) {
  const std::size_t count = outlets_.size();
  for (std::size_t tried = 0; tried < count; ++tried) {
    Outlet* const outlet = outlets_[outlet_turn_];
    outlet_turn_ = outlet_turn_ + 1 < count ? outlet_turn_ + 1 : 0;
    if (outlet->offer(offset, payload)) return true;
  }
  return false;
}

/// False if there is still something that came back: nothing newer is handed out before it.
bool Group::pump_returned_to_outlets(log::Log& log, Handed& handed) {
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

void Group::pump_outlets(log::Log& log, std::size_t bytes_max, Handed& handed) {
  if (!may_go_on() && !pump_returned_to_outlets(log, handed)) return;
  handed.more = walk_.walk(log, bytes_max, [&](Offset offset, ByteView payload) {
    if (!hand_over(offset, payload)) return false;
    ++handed.messages;
    handed.bytes += payload.size();
    return true;
  });
}

bool Group::turn_of_outlets(log::Log& log, Handed& handed) {
  const std::uint64_t before = handed.messages + handed.redelivered;
  pump_outlets(log, outlets_turn_bytes, handed);
  return handed.messages + handed.redelivered > before;
}

/// A slice for each that takes one. False: nobody did.
bool Group::turn_of_members(log::Log& log, std::size_t bytes_max, SteadyTime now, Handed& handed) {
  bool any = false;
  for (std::size_t asked = members_.size(); asked > 0 && handed.record_bytes() < bytes_max; --asked) {
    GroupMember& member = *members_[member_turn_];
    if (member.can_take()) {
      if (!hand_slice(log, member, now, handed)) return any;  // it is still its turn when something comes
      any = true;
    }
    member_turn_ = member_turn_ + 1 < members_.size() ? member_turn_ + 1 : 0;
  }
  return any;
}

/// False: there is nothing to be handed out.
bool Group::hand_slice(log::Log& log, GroupMember& member, SteadyTime now, Handed& handed) {
  const auto returned =
      returned_.next_slice(log, member.messages_left(), member.bytes_left(), member.codecs());
  if (returned) {
    returned_.taken(returned->slice.range());
    const auto taken = deliver(member, {returned->slice, returned->deliveries + 1, take_untold_loss()}, now);
    (returned->deliveries == 0 ? handed.messages : handed.redelivered) += taken;
    handed.bytes += returned->slice.message_bytes();
    return true;
  }
  if (!may_go_on()) return false;
  const auto slice =
      walk_.next_slice(log, no_end, member.messages_left(), member.bytes_left(), member.codecs());
  if (!slice) return false;
  handed.messages += deliver(member, {*slice, 1, take_untold_loss()}, now);
  handed.bytes += slice->message_bytes();
  return true;
}

/// How many messages of it the member took; the others are as they were.
std::uint32_t Group::deliver(GroupMember& member, const HandedSlice& handed, SteadyTime now) {
  const OffsetRange range = handed.slice.range();
  const std::uint32_t taken = member.deliver(handed, now);
  if (taken < handed.slice.count) come_back({range.begin + taken, range.end}, handed.delivery - 1);
  wait_until(member.next_deadline());
  return taken;
}

/// Each lost message is told of once, to whichever member is handed what comes next.
std::uint64_t Group::take_untold_loss() {
  const std::uint64_t lost = total(loss());
  const std::uint64_t untold = lost - loss_told_;
  loss_told_ = lost;
  return untold;
}

void Group::fetch_ahead_for_input(unsigned step) const {
  if (members_.empty()) return;
  if (step == 0) return fetch_ahead(members_.data(), sizeof members_.front());
  if (step == 1) return fetch_ahead(members_.front().get());
  members_.front()->fetch_ahead_for_input();
}

void Group::expire(SteadyTime now) {
  next_timer_ = returned_.release(now);
  for (const auto& member : members_) {
    member->expire(now,
                   [&](OffsetRange range, const Handing& handing) { come_back(range, handing.delivery); });
    wait_until(member->next_deadline());
  }
}

// --- Where it stands ---

Offset Group::committed() const {
  Offset oldest = walk_.offset();
  if (const auto returned = returned_.first()) oldest = std::min(oldest, *returned);
  for (const auto& member : members_) {
    if (!member->outstanding().empty()) oldest = std::min(oldest, member->outstanding().front().range.begin);
  }
  for (const Outlet* const outlet : outlets_) {
    if (const auto unsent = outlet->first_unsent()) oldest = std::min(oldest, *unsent);
  }
  return oldest;
}

/// Everything before next() that is not done with, in order.
std::vector<OffsetRange> Group::undone() const {
  std::vector<OffsetRange> undone;
  returned_.append_ranges_to(undone);
  for (const auto& member : members_)
    member->outstanding().for_each([&](OffsetRange range, const Handing&) { undone.push_back(range); });
  for (const Outlet* const outlet : outlets_) {
    for (const Offset offset : outlet->unsent()) undone.push_back({offset, offset + 1});
  }
  std::sort(undone.begin(), undone.end(),
            [](const OffsetRange& one, const OffsetRange& other) { return one.begin < other.begin; });
  return undone;
}

std::vector<OffsetRange> Group::acknowledged() const {
  std::vector<OffsetRange> acknowledged;
  const auto open = undone();
  if (open.empty()) return acknowledged;
  Offset done_from = open.front().end;
  for (const OffsetRange& range : open) {
    // What does not fit is handed out again after a crash.
    if (acknowledged.size() == limits::acknowledged_ranges_max) return acknowledged;
    if (done_from < range.begin) acknowledged.push_back({done_from, range.begin});
    done_from = std::max(done_from, range.end);
  }
  if (done_from < next()) acknowledged.push_back({done_from, next()});
  return acknowledged;
}

void Group::restore(Offset committed, const std::vector<OffsetRange>& acknowledged) {
  Offset undone_from = committed;
  for (const OffsetRange& range : acknowledged) {
    if (undone_from < range.begin) returned_.add({undone_from, range.begin}, 0);
    undone_from = std::max(undone_from, range.end);
  }
  walk_.seek(undone_from);
}

WalkLoss Group::loss() const {
  WalkLoss loss = walk_.loss();
  const WalkLoss& returned = returned_.loss();
  loss.trimmed += returned.trimmed;
  loss.damaged += returned.damaged;
  return loss;
}

std::vector<OffsetRange> Group::take_damage() {
  auto damage = walk_.take_damage();
  const auto returned = returned_.take_damage();
  damage.insert(damage.end(), returned.begin(), returned.end());
  return damage;
}

std::uint64_t Group::unhanded_in(OffsetRange range) const {
  const std::uint64_t returned = returned_.messages_in(range);
  const Offset from = std::max(range.begin, next());
  return from < range.end ? returned + distance(from, range.end) : returned;
}

std::uint64_t Group::lag(Offset first, Offset next) const {
  return distance(std::max(this->next(), first), next) + returned_.fresh_messages_from(first);
}

std::uint64_t Group::unacknowledged() const {
  std::uint64_t messages = 0;
  for (const auto& member : members_) messages += member->outstanding().messages();
  return messages;
}

}  // namespace lightq::broker
