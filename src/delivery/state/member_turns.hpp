/// The order in which a group's members receive messages, without asking members that cannot take any.
/// Layer: delivery.
#pragma once

#include <cstddef>

namespace lightq::broker {

/// Lists the members that may be able to take messages, in the order of their turns. The others rest.
/// A member rests after it was asked and could not take a message, until a change may let it take one. So
/// dispatch costs time by the number of members with credit, not by all members.
/// The links are in the members: `Member` derives publicly from MemberTurns<Member>::Turn. So no function
/// allocates, and each takes constant time. Lifetime: a member rests before it is destroyed. Thread: the
/// reactor's.
template <typename Member>
class MemberTurns {
 public:
  /// A member's place in the turn order. The member rests at first.
  class Turn {
   public:
    Turn() = default;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    /// Returns true if the member is not in the turn order.
    [[nodiscard]] bool is_resting() const { return before_ == nullptr; }

   private:
    friend class MemberTurns;
    Turn* before_ = nullptr;  // null: rests
    Turn* behind_ = nullptr;
  };

  MemberTurns() { ends_.before_ = ends_.behind_ = &ends_; }

  /// Puts the member behind all others in the turn order. Does nothing if it is in the order.
  void wake(Member& member) {
    if (!turn_of(member).is_resting()) return;
    link(turn_of(member));
    ++waiting_;
  }
  /// Takes the member out of the turn order. Does nothing if it rests.
  void rest(Member& member) {
    if (turn_of(member).is_resting()) return;
    unlink(turn_of(member));
    turn_of(member).before_ = turn_of(member).behind_ = nullptr;
    --waiting_;
  }
  /// Ends the front member's turn: moves it behind all others. Requires: waiting() is not 0.
  void next() {
    if (waiting_ == 1) return;
    Turn& front = *ends_.behind_;
    unlink(front);
    link(front);
  }

  /// Returns the number of members in the turn order.
  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  /// Returns the member whose turn it is. Requires: waiting() is not 0.
  [[nodiscard]] Member& front() const { return static_cast<Member&>(*ends_.behind_); }

 private:
  static Turn& turn_of(Member& member) { return member; }
  void link(Turn& turn) {
    turn.before_ = ends_.before_;
    turn.behind_ = &ends_;
    ends_.before_->behind_ = &turn;
    ends_.before_ = &turn;
  }
  static void unlink(Turn& turn) {
    turn.before_->behind_ = turn.behind_;
    turn.behind_->before_ = turn.before_;
  }

  std::size_t waiting_ = 0;
  Turn ends_;  // behind the last member and before the first
};

}  // namespace lightq::broker
