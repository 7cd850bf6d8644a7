/// Chooses the member that finishes its messages for a suspect. Layer: delivery.
#include "delivery/draining.hpp"

#include <algorithm>
#include <utility>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {

/// Returns true if the member has messages that are not alone. It may lack credit now: it often gets credit
/// only when it finishes a message.
bool could_drain(GroupMember& member, std::uint32_t alone_from) {
  const auto& outstanding = member.outstanding();
  if (member.lease().is_on() || outstanding.empty() || member.consumer() == nullptr) return false;
  return outstanding.messages() != 1 || outstanding.front().value.count <= alone_from;
}

}  // namespace

bool Draining::must_finish(const GroupMember& member, SteadyTime now, std::uint32_t alone_from) {
  // A member that has finished its messages, and has no credit, is no longer waited for.
  if (member_ != nullptr && member_->outstanding().empty() && !member_->can_take()) member_ = nullptr;
  if (member_ == nullptr && again_ <= now) choose(now, alone_from, nullptr);
  return member_ == &member;
}

void Draining::pass_on(SteadyTime now, std::uint32_t alone_from) {
  // A member that has finished its messages receives the suspect when it is asked.
  if (member_ == nullptr || now < until_ || member_->outstanding().empty()) return;
  GroupMember& former = *std::exchange(member_, nullptr);
  const std::chrono::seconds time = time_of(former);
  ++in_vain_[&former];
  former.wake();
  choose(now, alone_from, &former);
  if (member_ == nullptr) again_ = now + time;
}

void Draining::suspect_taken(SteadyTime now) {
  in_vain_.clear();
  again_ = {};
  until_ = std::min(until_, now + time_min);
}

bool Draining::end() {
  in_vain_.clear();
  again_ = {};
  if (member_ == nullptr) return false;
  std::exchange(member_, nullptr)->wake();
  return true;
}

/// Chooses the member that drains now, if any member can.
void Draining::choose(SteadyTime now, std::uint32_t alone_from, const GroupMember* except) {
  TurnWork::add(TurnWork::range_passed * members_.size());
  for (const auto& each : members_) {
    if (each.get() == except || !could_drain(*each, alone_from)) continue;
    if (member_ == nullptr || times_in_vain(*each) < times_in_vain(*member_)) member_ = each.get();
  }
  if (member_ != nullptr) until_ = now + time_of(*member_);
}

std::uint32_t Draining::times_in_vain(const GroupMember& member) const {
  const auto found = in_vain_.find(&member);
  return found == in_vain_.end() ? 0 : found->second;
}

/// Returns how long the member drains.
std::chrono::seconds Draining::time_of(const GroupMember& member) const {
  constexpr std::uint32_t doublings_max = 10;
  return time_min * (1U << std::min(times_in_vain(member), doublings_max));
}

}  // namespace lightq::broker
