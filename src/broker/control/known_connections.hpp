/// Connections over which somebody was permitted something, and which of them makes room. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace lightq::broker {

/// Each has an owner: the user who was permitted something over it last, or who has no user a source. What
/// makes room is of the owner that has most, and of those the one that was used longest ago; one whose
/// answers have not wholly left only where there is no other, and never one with a request under way. So one
/// who opens many ends his own. They go by their numbers. One thread.
class KnownConnections {
 public:
  /// Something was permitted over it, which is under way. New, or of another owner than before: it is
  /// `owner`'s from now on.
  void used(std::uint64_t connection, const std::string& owner);
  /// A request is under way over it. Nothing happens where it is not known, nor the second time.
  void busy(std::uint64_t connection);
  /// None is any more, but not all of its answers have left. Likewise.
  void unread(std::uint64_t connection);
  /// They have. Likewise.
  void idle(std::uint64_t connection);
  /// It has ended. Likewise.
  void leave(std::uint64_t connection);
  /// What makes room: it stays until it leaves. Nothing: all of the owner that has most are busy.
  [[nodiscard]] std::optional<std::uint64_t> to_displace() const;
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  enum class State { busy, unread, idle };
  using ByUse = std::map<std::uint64_t, std::uint64_t>;  // when it was used → the connection
  struct Owner {
    std::size_t connections = 0;
    ByUse idle;
    ByUse unread;
    [[nodiscard]] ByUse* in(State state) {
      return state == State::idle ? &idle : state == State::unread ? &unread : nullptr;
    }
    [[nodiscard]] const ByUse& first_to_go() const { return idle.empty() ? unread : idle; }
  };
  using Owners = std::unordered_map<std::string, Owner>;
  struct Place {
    Owners::value_type* owner = nullptr;
    std::uint64_t used = 0;
    State state = State::busy;
  };
  /// In the order in which they make room.
  struct Rank {
    std::size_t connections;
    bool unread;         // it has none that is idle
    std::uint64_t used;  // when the first to go was; of one whose are all busy the largest number
    const Owners::value_type* owner;
    bool operator<(const Rank& other) const;
  };
  static Rank rank_of(const Owners::value_type& owner);
  void set(std::uint64_t connection, State state);
  void remove_from_owner(Place& place);

  std::uint64_t uses_ = 0;
  Owners owners_;  // those that have any; each stays where it is in memory
  std::set<Rank> ranks_;
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace lightq::broker
