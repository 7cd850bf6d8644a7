/// The connections of the control socket over which a request was permitted, and which of them is evicted
/// next. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace lightq::broker {

/// Each connection has an owner: the user that was last permitted a request over it, or the source if there
/// was no user. The connection to evict belongs to the owner with most connections, and is its least recently
/// used one. A connection with unsent replies is chosen only if that owner has no idle one. A connection with
/// a request under way is never chosen. A user that opens many connections thus loses its own. Connections
/// are identified by number. One thread.
class KnownConnections {
 public:
  /// Records that a request was permitted over the connection and is under way. Adds the connection if it is
  /// new, and makes `owner` its owner.
  void used(std::uint64_t connection, const std::string& owner);
  /// Records that a request is under way. Does nothing if the connection is not known or already busy.
  void busy(std::uint64_t connection);
  /// Records that no request is under way, but some replies are unsent. Does nothing if the connection is not
  /// known.
  void unread(std::uint64_t connection);
  /// Records that no request is under way and all replies are sent. Does nothing if the connection is not
  /// known.
  void idle(std::uint64_t connection);
  /// Removes a connection that has ended. Does nothing if it is not known.
  void leave(std::uint64_t connection);
  /// Returns the connection to evict. It stays in the set until `leave`. Returns nothing if the owner with
  /// most connections has only busy ones.
  [[nodiscard]] std::optional<std::uint64_t> to_evict() const;
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  enum class State { busy, unread, idle };
  using ByUse = std::map<std::uint64_t, std::uint64_t>;  // time of use → connection
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
  /// Orders owners: the one whose connection is evicted first comes first.
  struct Rank {
    std::size_t connections;
    bool unread;  // the owner has no idle connection
    // The time of use of the connection that the owner loses first; the largest number if all are busy.
    std::uint64_t used;
    const Owners::value_type* owner;
    bool operator<(const Rank& other) const;
  };
  static Rank rank_of(const Owners::value_type& owner);
  void set(std::uint64_t connection, State state);
  void remove_from_owner(Place& place);

  std::uint64_t uses_ = 0;
  Owners owners_;  // owners with connections; addresses are stable
  std::set<Rank> ranks_;
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace lightq::broker
