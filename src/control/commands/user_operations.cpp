/// The operations on users and passwords. Layer: control.
#include "control/commands/user_operations.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <lightq/base/shown_uri.hpp>

namespace lightq::broker {

namespace {

using protocol::Rights;
using protocol::TopicRight;

Error no_such_user(const std::string& user_id) {
  return {ErrorCode::user_not_found, "there is no user " + shown_user(user_id)};
}

Error taken(const std::string& why) {
  return {ErrorCode::user_already_exists, why};
}

/// Removes rights on a pattern. Returns false if the user had none of them.
bool take_right(std::vector<TopicRight>& from, const TopicRight& right) {
  const auto found = std::ranges::find(from, right.topic, &TopicRight::topic);
  if (found == from.end()) return false;
  const Rights had = found->rights;
  found->rights = {.produce = had.produce && !right.rights.produce,
                   .consume = had.consume && !right.rights.consume,
                   .manage = had.manage && !right.rights.manage};
  const bool taken_away = found->rights != had;
  if (!found->rights.any()) from.erase(found);
  return taken_away;
}

}  // namespace

void UserOperations::bring_up() {
  for (const auto& [name, user] : parts_.catalogue.state().users())
    parts_.data_plane.put_user(user, [](const Result<void>&) {});
}

void UserOperations::bring_into_force(std::function<void(Done<void>)> apply, const Done<void>& done) {
  parts_.commits.commit([apply = std::move(apply), done](const Result<void>& committed) {
    // Apply it even if the disk refuses: a revoked right then ends at least as long as this broker runs.
    apply([committed, done](const Result<void>& applied) { done(committed ? applied : committed); });
  });
}

/// Applies the user's new record, which the catalogue has.
void UserOperations::put_in_force(const UserRecord& changed, const Done<void>& done) {
  bring_into_force(
      [this, id = changed.id](Done<void> applied) {
        // The user may have been changed again since.
        const UserRecord* const now = parts_.catalogue.state().user_of_id(id);
        if (now == nullptr) return parts_.data_plane.remove_user(id, std::move(applied));
        parts_.data_plane.put_user(*now, std::move(applied));
      },
      done);
}

std::optional<Error> UserOperations::objection_to(const NewUser& user) const {
  const auto& state = parts_.catalogue.state();
  const std::string& name = user.name;
  if (parts_.passwords.is_admin(name)) return taken("this name belongs to the administrator");
  if (state.user(name) != nullptr) return taken("there is already a user " + name);
  if (const auto* const credential = state.credential_of(name)) {
    const auto& topics = state.topics();
    const auto its =
        std::ranges::find(topics, credential->id, [](const auto& each) { return each.second.credential_id; });
    const std::string topic = its == topics.end() ? "a topic" : "topic " + its->first;
    return taken(topic + " has its own user of this name; delete the topic or choose another name");
  }
  if (user.uid && state.user_of_uid(*user.uid) != nullptr)
    return taken("uid: another user has it: " + state.user_of_uid(*user.uid)->name());
  if (state.users().size() >= parts_.settings.users_max) {
    count(parts_.settings.limits_reached, Limit::users_max);
    return Error{ErrorCode::limit_reached, "there are " + std::to_string(parts_.settings.users_max) +
                                               " users, the maximum (users_max)"};
  }
  return std::nullopt;
}

void UserOperations::create(const Asker& asker, NewUser user, const Done<void>& done) {
  if (const auto refused = objection_to(user)) return done(*refused);
  if (user.password.empty()) return create_hashed(user, {}, done);
  Secret password = std::move(user.password);
  const auto kept = std::make_shared<const NewUser>(std::move(user));
  parts_.passwords.hash(std::move(password), asker,
                        [this, kept, asker, done](const Result<std::string>& argon2) {
                          if (!argon2) return done(argon2.error());
                          if (!parts_.rights.is_admin(asker)) return done(parts_.rights.refusal());
                          create_hashed(*kept, argon2.value(), done);
                        });
}

void UserOperations::create_hashed(const NewUser& user, const std::string& argon2, const Done<void>& done) {
  // Another user may have taken the name while the password was hashed.
  if (const auto refused = objection_to(user)) return done(*refused);
  UserRecord record;
  record.credential = {0, user.name, argon2};
  record.is_admin = user.is_admin;
  record.uid = user.uid;
  for (const TopicRight& right : user.rights) {
    if (const auto added = add_right(record.rights, right); !added) return done(added.error());
  }
  const auto added = parts_.catalogue.add_user(std::move(record));
  if (!added) return done(added.error());
  put_in_force(added.value(), done);
}

/// Adds rights on a pattern. A user that has rights on too many patterns already keeps them.
Result<void> UserOperations::add_right(std::vector<TopicRight>& to, const TopicRight& right) const {
  const std::size_t most = parts_.settings.rights_per_user_max;
  auto found = std::ranges::find(to, right.topic, &TopicRight::topic);
  if (found == to.end() && to.size() >= most) {
    count(parts_.settings.limits_reached, Limit::rights_per_user_max);
    return Error{ErrorCode::limit_reached,
                 "a user has rights on at most " + std::to_string(most) + " patterns"};
  }
  if (found == to.end()) found = to.insert(found, TopicRight{right.topic, {}});
  found->rights.produce |= right.rights.produce;
  found->rights.consume |= right.rights.consume;
  found->rights.manage |= right.rights.manage;
  return {};
}

void UserOperations::remove(const std::string& name, const Done<void>& done) {
  const UserRecord* const user = parts_.catalogue.state().user(name);
  if (user == nullptr) return done(no_such_user(name));
  const std::uint64_t id = user->id;
  if (const auto removed = parts_.catalogue.remove_user(id); !removed) return done(removed.error());
  bring_into_force([this, id](Done<void> applied) { parts_.data_plane.remove_user(id, std::move(applied)); },
                   done);
}

void UserOperations::grant(const std::string& name, const TopicRight& right, const Done<void>& done) {
  const UserRecord* const user = parts_.catalogue.state().user(name);
  if (user == nullptr) return done(no_such_user(name));
  UserRecord changed = *user;
  if (const auto added = add_right(changed.rights, right); !added) return done(added.error());
  change_rights(changed, done);
}

void UserOperations::revoke(const std::string& name, const TopicRight& right, const Done<void>& done) {
  const UserRecord* const user = parts_.catalogue.state().user(name);
  if (user == nullptr) return done(no_such_user(name));
  UserRecord changed = *user;
  if (!take_right(changed.rights, right)) {
    return done(Error{ErrorCode::invalid_request,
                      "rights: " + name + " has none of these rights with the pattern " + right.topic});
  }
  change_rights(changed, done);
}

void UserOperations::change_rights(const UserRecord& changed, const Done<void>& done) {
  if (const auto put = parts_.catalogue.put_user(changed); !put) return done(put.error());
  put_in_force(changed, done);
}

void UserOperations::set_password(const Asker& asker, const std::string& name, Secret password,
                                  const Done<void>& done) {
  const UserRecord* const user = parts_.catalogue.state().user(name);
  if (user == nullptr) return done(no_such_user(name));
  parts_.passwords.hash(std::move(password), asker,
                        [this, name, id = user->id, asker, done](const Result<std::string>& argon2) {
                          if (!argon2) return done(argon2.error());
                          const UserRecord* const now = parts_.catalogue.state().user(name);
                          if (now == nullptr || now->id != id) return done(no_such_user(name));
                          // A password that was set meanwhile is newer than the permission of this request.
                          const bool is_self = parts_.rights.user_of(asker) == now;
                          if (!is_self && !parts_.rights.is_admin(asker))
                            return done(parts_.rights.refusal());
                          const auto changed = parts_.catalogue.set_user_password(*now, argon2.value());
                          if (!changed) return done(changed.error());
                          put_in_force(changed.value(), done);
                        });
}

void UserOperations::set_topic_password(const Asker& asker, const TopicName& topic,
                                        const std::string& expected, const Secret& password,
                                        const Done<void>& done) {
  const auto id = parts_.ready.find(topic);
  if (!id) return done(id.error());
  const auto& state = parts_.catalogue.state();
  const CredentialRecord* const own = state.credential(state.find(id.value())->credential_id);
  if (own == nullptr || (!expected.empty() && own->user_id != expected))
    return done(Error{ErrorCode::invalid_request, "user_id: not the topic's own user"});
  const auto user = std::make_shared<const protocol::Credentials>(own->user_id, password.expose());
  parts_.passwords.enrol(*user, asker,
                         [this, topic = id.value(), user, asker, done](const Result<Enrolment>& enrolment) {
                           if (!may_set_password(asker, topic)) return done(parts_.rights.refusal());
                           if (!enrolment) return done(enrolment.error());
                           replace_credential(topic, *user, *enrolment, done);
                         });
}

/// Returns true if the asker may still set the password of the topic's own user. Also returns true for a
/// topic that does not exist any more.
bool UserOperations::may_set_password(const Asker& asker, TopicId topic) const {
  const TopicEntry* const entry = parts_.catalogue.state().find(topic);
  if (entry == nullptr) return true;
  if (asker.kind == Asker::Kind::topic_user) return entry->credential_id == asker.holder.user;
  return parts_.rights.manages(asker, entry->definition.name.text());
}

void UserOperations::replace_credential(TopicId topic, const protocol::Credentials& user,
                                        const Enrolment& enrolment, const Done<void>& done) {
  auto& catalogue = parts_.catalogue;
  if (catalogue.state().find(topic) == nullptr)
    return done(Error{ErrorCode::topic_not_found, "topic not found"});
  // Always add a new credential, because tickets name their credential. The password may be a former one that
  // another topic still uses. Tickets of that time must not become valid again.
  const CredentialRecord* const known = catalogue.state().credential(enrolment.known_id);
  if (enrolment.known_id != 0 && known == nullptr)
    return done(Error{ErrorCode::busy, "another command is removing the topic's user; try again"});
  const auto id = catalogue.add_credential(user.user_id, known == nullptr ? enrolment.argon2 : known->argon2);
  if (!id) return done(id.error());
  parts_.passwords.remember(id.value(), user);
  if (const auto set = catalogue.set_topic_credential(topic, id.value()); !set) return done(set.error());
  bring_into_force(
      [this, topic](Done<void> applied) {
        const TopicEntry* const now = parts_.catalogue.state().find(topic);
        parts_.data_plane.set_owner(topic, now == nullptr ? 0 : now->credential_id, std::move(applied));
      },
      done);
}

std::vector<protocol::UserListing> UserOperations::list() const {
  std::vector<protocol::UserListing> users;
  for (const auto& [name, user] : parts_.catalogue.state().users())
    users.push_back({name, user.is_admin, user.uid, user.rights});
  return users;
}

}  // namespace lightq::broker
