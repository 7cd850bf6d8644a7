/// Looks up the present rights of an asker. Layer: control.
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

const UserRecord* AskerRights::user_of(const Asker& asker) const {
  if (asker.kind != Asker::Kind::user) return nullptr;
  const UserRecord* const user = catalogue_.state().user_of_id(asker.holder.user);
  return user != nullptr && user->generation == asker.holder.generation ? user : nullptr;
}

bool AskerRights::is_admin(const Asker& asker) const {
  // The administrator's password does not change while the broker runs.
  if (asker.is_administrator()) return true;
  const UserRecord* const user = user_of(asker);
  return user != nullptr && user->is_admin;
}

bool AskerRights::manages(const Asker& asker, std::string_view topic) const {
  if (asker.is_administrator()) return true;
  const UserRecord* const user = user_of(asker);
  return user != nullptr && user->may(protocol::Right::manage, topic);
}

std::function<bool(std::string_view topic)> AskerRights::managed_by(const Asker& asker) const {
  if (asker.is_administrator()) return [](std::string_view) { return true; };
  const UserRecord* const user = user_of(asker);
  if (user == nullptr) return [](std::string_view) { return false; };
  return [access = static_cast<const UserAccess&>(*user)](std::string_view topic) {
    return access.may(protocol::Right::manage, topic);
  };
}

bool AskerRights::may(const Asker& asker, protocol::Right right, std::string_view topic,
                      const GroupScope& scope) const {
  if (asker.is_administrator()) return true;
  if (asker.kind == Asker::Kind::topic_user) {
    const TopicEntry* const entry = catalogue_.state().find(topic);
    return entry != nullptr && entry->credential_id == asker.holder.user;
  }
  const UserRecord* const user = user_of(asker);
  return user != nullptr && user->may(right, topic, scope);
}

Error AskerRights::refusal() const {
  refused_();
  return {ErrorCode::unauthorized_access, "unauthorized_access"};
}

}  // namespace lightq::broker
