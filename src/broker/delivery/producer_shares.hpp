/// Whose the known producers of a topic are, and which of them is forgotten first. Layer: delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "broker/delivery/fair_share.hpp"

namespace lightq::broker {

/// One that a channel has open is never forgotten. Of the others those go first that never stored a message;
/// then those of the user who has most, first the one that was closed first. User 0: nobody in particular, as
/// after a restart. Nothing here is done for each message. The reactor's thread.
class ProducerShares {
 public:
  explicit ProducerShares(std::size_t producers_max) : share_(producers_max) {}

  /// A producer is known from now on; no channel has it open yet.
  void add(std::uint64_t id, std::uint64_t user, bool has_stored);
  /// It is not any more. Nothing happens to one that is not known.
  void remove(std::uint64_t id);
  void clear();

  /// Whether a channel of `user` may open the producer, or one that is new: who keeps half of all that there
  /// may be open leaves the last eighth to others.
  [[nodiscard]] bool may_open(std::uint64_t user, std::optional<std::uint64_t> id) const;
  /// A channel of `user`, whose producer it is now, has it open; close as often.
  void open(std::uint64_t id, std::uint64_t user);
  void close(std::uint64_t id);
  [[nodiscard]] bool is_open(std::uint64_t id) const;
  /// It has its first message.
  void stored(std::uint64_t id);

  /// Who makes room for one more of `user`; nothing: all are open.
  [[nodiscard]] std::optional<std::uint64_t> first_to_forget(std::uint64_t user) const;

 private:
  using Waiting = std::map<std::uint64_t, std::uint64_t>;  // no channel has them open: by turn, the id
  struct Producer {
    std::uint64_t user = 0;
    std::uint32_t channels = 0;
    std::uint64_t turn = 0;  // while no channel has it open
    bool has_stored = false;
  };
  struct User {
    std::size_t known = 0;
    std::size_t open = 0;
    Waiting waiting;  // of those that have stored something
  };
  template <typename Change>
  void change(std::uint64_t user, Change&& change);
  void wait(std::uint64_t id, Producer& producer);
  void end_wait(const Producer& producer);

  FairShare share_;
  std::unordered_map<std::uint64_t, Producer> producers_;           // by id
  std::unordered_map<std::uint64_t, User> users_;                   // those that have any
  std::set<std::pair<std::size_t, std::uint64_t>> users_by_known_;  // those with somebody waiting
  Waiting empty_;                                                   // of those that have not, whosever
  std::size_t open_ = 0;
  std::uint64_t last_turn_ = 0;
};

}  // namespace lightq::broker
