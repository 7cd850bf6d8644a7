/// Which user each known producer of a topic counts for, and which producer is forgotten first.
/// Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "admission/fair_share.hpp"

namespace lightq::broker {

/// Chooses the producer to forget when a new one needs its place. A producer that a channel has open is never
/// forgotten.
/// Producers that never stored a message go first. Then go those of the user with the most producers, the
/// longest closed first.
/// User 0 is an unknown user, for example after a restart. No function runs once per message. Thread: the
/// reactor's.
class ProducerShares {
 public:
  explicit ProducerShares(std::size_t producers_max) : share_(producers_max) {}

  /// Adds a producer, which no channel has open yet.
  void add(std::uint64_t id, std::uint64_t user, bool has_stored);
  /// Removes a producer. Does nothing if it is not known.
  void remove(std::uint64_t id);
  void clear();

  /// Returns true if a channel of `user` may open the producer `id`, or a new one. A user with half of all
  /// open producers leaves the last eighth to others (FairShare).
  [[nodiscard]] bool may_open(std::uint64_t user, std::optional<std::uint64_t> id) const;
  /// Records that a channel of `user` has the producer open, and that it counts for `user` from now on. Call
  /// `close` as often.
  void open(std::uint64_t id, std::uint64_t user);
  void close(std::uint64_t id);
  [[nodiscard]] bool is_open(std::uint64_t id) const;
  /// Records that the producer has stored its first message.
  void stored(std::uint64_t id);

  /// Returns the producer to forget for a new one of `user`. Returns nothing if all are open.
  [[nodiscard]] std::optional<std::uint64_t> first_to_forget(std::uint64_t user) const;

 private:
  using Waiting = std::map<std::uint64_t, std::uint64_t>;  // ids by turn, of producers that are not open
  struct Producer {
    std::uint64_t user = 0;
    std::uint32_t channels = 0;
    std::uint64_t turn = 0;  // order of closing, while no channel has it open
    bool has_stored = false;
  };
  struct User {
    std::size_t known = 0;
    std::size_t open = 0;
    Waiting waiting;  // its closed producers that have stored a message
  };
  template <typename Change>
  void change(std::uint64_t user, Change&& change);
  void wait(std::uint64_t id, Producer& producer);
  void end_wait(const Producer& producer);

  FairShare share_;
  std::unordered_map<std::uint64_t, Producer> producers_;           // by id
  std::unordered_map<std::uint64_t, User> users_;                   // users with at least one producer
  std::set<std::pair<std::size_t, std::uint64_t>> users_by_known_;  // users with an entry in `waiting`
  Waiting empty_;  // closed producers of all users that never stored a message
  std::size_t open_ = 0;
  std::uint64_t last_turn_ = 0;
};

}  // namespace lightq::broker
