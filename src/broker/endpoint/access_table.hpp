/// Whose tickets are still good for what: one reactor's copy of users and their rights. Layer: endpoint.
#pragma once

#include <cstdint>
#include <unordered_map>

#include <lightq/base/types.hpp>

#include "broker/endpoint/ticket.hpp"
#include "broker/endpoint/user_access.hpp"

namespace lightq::broker {

/// The control thread posts every change to every reactor (docs/adr/0011). The reactor's thread.
class AccessTable {
 public:
  /// In place of what was known of the user. True: something was, so tickets of it may be about.
  bool put_user(UserAccess user);
  bool remove_user(std::uint64_t id) { return users_.erase(id) > 0; }
  /// Tickets of this holder permit everything with the topic; 0: it has no user of its own.
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
  /// Of the administrator's password: his tickets of another one permit nothing.
  void set_admin_generation(std::uint32_t generation) { admin_generation_ = generation; }

  /// Whether a ticket of this holder still permits that with the topic, which has this name. The
  /// administrator's does.
  [[nodiscard]] bool permits(const TicketHolder& holder, const Grant& grant, const TopicName& topic,
                             const GroupScope& scope) const;
  /// Whether the holder may manage a group of the topic: an administrator, a user with that right, or the
  /// topic's own.
  [[nodiscard]] bool may_manage(const TicketHolder& holder, TopicId topic, const TopicName& name,
                                const GroupScope& scope) const;

 private:
  [[nodiscard]] bool has_right(const TicketHolder& holder, protocol::Right right, TopicId topic,
                               const TopicName& name, const GroupScope& scope) const;

  std::unordered_map<std::uint64_t, UserAccess> users_;      // by id
  std::unordered_map<std::uint64_t, std::uint64_t> owners_;  // topic → its own user
  std::uint32_t admin_generation_ = 0;
};

}  // namespace lightq::broker
