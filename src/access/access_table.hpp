/// One reactor's copy of users and their rights, by which it checks tickets. Layer: access.
#pragma once

#include <cstdint>
#include <unordered_map>

#include <lightq/base/types.hpp>

#include "access/ticket.hpp"
#include "access/user_access.hpp"

namespace lightq::broker {

/// A copy of the catalogue's users and topic owners. The control thread posts every change to every reactor
/// (docs/adr/0011). Thread: the reactor's.
class AccessTable {
 public:
  /// Adds or replaces a user. Returns true if it replaced one, so that connections with tickets of this user
  /// may exist.
  bool put_user(UserAccess user);
  bool remove_user(std::uint64_t id) { return users_.erase(id) > 0; }
  /// Makes `holder` the topic's own user, whose tickets permit everything with the topic. 0: the topic has no
  /// user of its own.
  void set_owner(TopicId topic, std::uint64_t holder);
  void forget_topic(TopicId topic) { owners_.erase(topic.value); }
  /// Returns true if there is such a user.
  [[nodiscard]] bool has_user(std::uint64_t id) const { return users_.contains(id); }
  /// Returns true if the topic has a user of its own.
  [[nodiscard]] bool has_own_user(TopicId topic) const { return owners_.contains(topic.value); }
  /// Returns true if `user` is the topic's own user.
  [[nodiscard]] bool is_topics_own(std::uint64_t user, TopicId topic) const {
    const auto owner = owners_.find(topic.value);
    return owner != owners_.end() && owner->second == user;
  }
  /// Sets the generation of the administrator's password. Tickets of another generation permit nothing.
  void set_admin_generation(std::uint32_t generation) { admin_generation_ = generation; }

  /// Returns true if a ticket of this holder still permits `grant` with the topic called `topic`. The
  /// administrator's ticket of the current generation permits everything.
  [[nodiscard]] bool permits(const TicketHolder& holder, const Grant& grant, const TopicName& topic,
                             const GroupScope& scope) const;
  /// Returns true if the holder may manage a group of the topic: the administrator, a user with the right
  /// `manage`, or the topic's own user.
  [[nodiscard]] bool may_manage(const TicketHolder& holder, TopicId topic, const TopicName& name,
                                const GroupScope& scope) const;

 private:
  [[nodiscard]] bool has_right(const TicketHolder& holder, protocol::Right right, TopicId topic,
                               const TopicName& name, const GroupScope& scope) const;

  std::unordered_map<std::uint64_t, UserAccess> users_;      // by user id
  std::unordered_map<std::uint64_t, std::uint64_t> owners_;  // topic → its own user's id
  std::uint32_t admin_generation_ = 0;
};

}  // namespace lightq::broker
