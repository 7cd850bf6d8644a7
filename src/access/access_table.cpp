/// One reactor's copy of users and their rights. Layer: access.
#include "access/access_table.hpp"

#include <utility>

namespace lightq::broker {

bool AccessTable::put_user(UserAccess user) {
  const std::uint64_t id = user.id;
  return !users_.insert_or_assign(id, std::move(user)).second;
}

void AccessTable::set_owner(TopicId topic, std::uint64_t holder) {
  if (holder == 0) return forget_topic(topic);
  owners_.insert_or_assign(topic.value, holder);
}

bool AccessTable::permits(const TicketHolder& holder, const Grant& grant, const TopicName& topic,
                          const GroupScope& scope) const {
  const auto right =
      grant.role == EndpointRole::produce ? protocol::Right::produce : protocol::Right::consume;
  return has_right(holder, right, grant.topic, topic, scope);
}

bool AccessTable::may_manage(const TicketHolder& holder, TopicId topic, const TopicName& name,
                             const GroupScope& scope) const {
  return has_right(holder, protocol::Right::manage, topic, name, scope);
}

bool AccessTable::has_right(const TicketHolder& holder, protocol::Right right, TopicId topic,
                            const TopicName& name, const GroupScope& scope) const {
  if (holder.user == 0) return holder.generation == admin_generation_;
  if (const auto user = users_.find(holder.user); user != users_.end())
    return user->second.generation == holder.generation && user->second.may(right, name.text(), scope);
  const auto owner = owners_.find(topic.value);
  return owner != owners_.end() && owner->second == holder.user;
}

}  // namespace lightq::broker
