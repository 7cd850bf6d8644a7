/// Whose turn it is among a group's members, without asking those that cannot take anything. Layer: delivery.
#pragma once

#include <cstddef>
#include <list>

namespace lightq::broker {

class GroupMember;

/// Two lists: members that may be able to take messages, in the order of their turns, and resting ones. A
/// member rests from when it was asked and could not take anything until something changes that may let it.
/// So a hand-out costs by the members with credit, not by all. Moves allocate nothing. The reactor's thread.
class MemberTurns {
 public:
  using Place = std::list<GroupMember*>::iterator;

  /// A new member rests.
  Place add(GroupMember& member) { return resting_.insert(resting_.end(), &member); }
  void remove(Place place, bool resting) { (resting ? resting_ : waiting_).erase(place); }

  /// The member's turn comes after all others'. Requires: it rests.
  void wake(Place place) { waiting_.splice(waiting_.end(), resting_, place); }
  /// Requires: it does not rest.
  void rest(Place place) { resting_.splice(resting_.end(), waiting_, place); }
  /// The member whose turn it is has had it.
  void next() { waiting_.splice(waiting_.end(), waiting_, waiting_.begin()); }

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  /// The member whose turn it is. Requires: waiting() is not 0.
  [[nodiscard]] GroupMember& front() const { return *waiting_.front(); }

 private:
  std::list<GroupMember*> waiting_;
  std::list<GroupMember*> resting_;
};

}  // namespace lightq::broker
