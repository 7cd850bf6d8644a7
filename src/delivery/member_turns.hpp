/// The order in which a group's members receive messages, without asking members that cannot take any.
/// Layer: delivery.
#pragma once

#include <cstddef>
#include <list>

namespace lightq::broker {

class GroupMember;

/// Keeps two lists: members that may be able to take messages, in the order of their turns, and resting
/// members.
/// A member rests after it was asked and could not take a message, until a change may let it take one. So
/// dispatch costs time by the number of members with credit, not by all members.
/// Moves between the lists allocate nothing. Thread: the reactor's.
class MemberTurns {
 public:
  using Place = std::list<GroupMember*>::iterator;

  /// Adds a member, which rests at first.
  Place add(GroupMember& member) { return resting_.insert(resting_.end(), &member); }
  void remove(Place place, bool resting) { (resting ? resting_ : waiting_).erase(place); }

  /// Puts the member behind all others in the turn order. Requires: it rests.
  void wake(Place place) { waiting_.splice(waiting_.end(), resting_, place); }
  /// Moves the member to the resting ones. Requires: it does not rest.
  void rest(Place place) { resting_.splice(resting_.end(), waiting_, place); }
  /// Ends the front member's turn: moves it behind all others.
  void next() { waiting_.splice(waiting_.end(), waiting_, waiting_.begin()); }

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  /// Returns the member whose turn it is. Requires: waiting() is not 0.
  [[nodiscard]] GroupMember& front() const { return *waiting_.front(); }

 private:
  std::list<GroupMember*> waiting_;
  std::list<GroupMember*> resting_;
};

}  // namespace lightq::broker
