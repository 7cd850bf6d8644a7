/// The member of a group that finishes its messages for one that is to be alone. Layer: delivery.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "delivery/group_member.hpp"
#include "delivery/state/group_time.hpp"

namespace lightq::broker {

/// Chooses the member without leases that gets no message until it has none, and then one that is to be alone
/// (a *suspect*). One member at a time drains, so that the others go on.
///
/// A member may never finish its messages, for example because it extends them again and again, while another
/// one that would finish them has new ones all the time. So a member drains for a second at first. Then it
/// has drained *in vain*: it takes messages again, and another member drains. Members that did so less often
/// are chosen first. Each time in vain doubles a member's next time, because its messages may take longer,
/// until a suspect is delivered. If there is no other member, the same one takes messages for as long as it
/// has drained. ConsumerGroup owns it. Thread: the reactor's.
class Draining {
 public:
  using Members = std::vector<std::unique_ptr<GroupMember>>;
  static constexpr std::chrono::seconds time_min{1};

  /// Lifetime: the members outlive it, or are reported by `left`.
  explicit Draining(const Members& members) : members_(members) {}

  /// Returns true if the member must finish its messages now. Called while a suspect waits, for a member
  /// without leases that has other messages and could take one. `alone_from`: see AttemptRules.
  bool must_finish(const GroupMember& member, SteadyTime now, std::uint32_t alone_from);
  /// Returns true if the member has finished its messages, or is to.
  [[nodiscard]] bool is_by(const GroupMember& member) const { return member_ == &member; }
  /// Called at the time of `next`: if a member has drained in vain, another one drains now.
  void pass_on(SteadyTime now, std::uint32_t alone_from);
  /// Called when a member has received a suspect.
  void suspect_taken(SteadyTime now);
  /// Called when the member receives messages, or leaves.
  void taken_by(const GroupMember& member) {
    if (member_ == &member) member_ = nullptr;
  }
  void left(const GroupMember& member) {
    taken_by(member);
    in_vain_.erase(&member);
  }
  /// Called when no suspect waits. Returns true if a member had drained for one; it takes messages again.
  bool end();
  /// Returns when to call `pass_on`, or `never`.
  [[nodiscard]] SteadyTime next() const {
    return member_ == nullptr || member_->outstanding().empty() ? never : until_;
  }

 private:
  void choose(SteadyTime now, std::uint32_t alone_from, const GroupMember* except);
  [[nodiscard]] std::uint32_t times_in_vain(const GroupMember& member) const;
  [[nodiscard]] std::chrono::seconds time_of(const GroupMember& member) const;

  const Members& members_;
  GroupMember* member_ = nullptr;  // the one that drains
  SteadyTime until_ = never;       // with member_
  SteadyTime again_{};             // none drains before
  std::unordered_map<const GroupMember*, std::uint32_t>
      in_vain_;  // how often, since the last suspect was taken
};

}  // namespace lightq::broker
