/// The commands create_user, delete_user, set_password, grant, revoke and list_users. Layer: control.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <lightq/base/shown_uri.hpp>

#include "access/secret.hpp"
#include "control/commands/command_handler.hpp"

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

/// Adds rights on a pattern. `most`: the number of patterns per user; a user that has more already keeps
/// them.
Result<void> add_right(std::vector<TopicRight>& to, const TopicRight& right, std::size_t most) {
  auto found = std::ranges::find(to, right.topic, &TopicRight::topic);
  if (found == to.end() && to.size() >= most) {
    return Error{ErrorCode::limit_reached,
                 "a user has rights on at most " + std::to_string(most) + " patterns"};
  }
  if (found == to.end()) found = to.insert(found, TopicRight{right.topic, {}});
  found->rights.produce |= right.rights.produce;
  found->rights.consume |= right.rights.consume;
  found->rights.manage |= right.rights.manage;
  return {};
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

void CommandHandler::bring_into_force(std::string_view cmd,
                                      const std::function<void(DataPlane::Done<Result<void>>)>& apply,
                                      const Answer& answer) {
  commits_.commit([=](const Result<void>& committed) {
    // Apply it even if the disk refuses: a revoked right then ends at least as long as this broker runs.
    apply([=](const Result<void>& applied) {
      if (!committed) return answer(error_reply(cmd, committed.error()));
      if (!applied) return answer(error_reply(cmd, applied.error()));
      answer(protocol::OkReply{std::string(cmd), {}, {}});
    });
  });
}

/// Applies the user's new rights. Replies when they are durable and in force on every thread.
void CommandHandler::put_user(std::string_view cmd, const Result<UserRecord>& changed, const Answer& answer) {
  if (!changed) return answer(error_reply(cmd, changed.error()));
  const UserAccess access = changed.value();
  bring_into_force(
      cmd,
      [this, access](DataPlane::Done<Result<void>> done) {
        // The user may have been changed again since.
        const auto& users = catalogue_.state().users();
        const auto now = std::ranges::find(users, access.id, [](const auto& each) { return each.second.id; });
        if (now == users.end()) return data_plane_.remove_user(access.id, std::move(done));
        data_plane_.put_user(now->second, std::move(done));
      },
      answer);
}

std::optional<Error> CommandHandler::objection_to(const protocol::CreateUser& request) const {
  const auto& state = catalogue_.state();
  const std::string& name = request.user.user_id;
  if (authenticator_.is_admin(name)) return taken("this name belongs to the administrator");
  if (state.user(name) != nullptr) return taken("there is already a user " + name);
  if (const auto* const credential = state.credential_of(name)) {
    const auto& topics = state.topics();
    const auto its =
        std::ranges::find(topics, credential->id, [](const auto& each) { return each.second.credential_id; });
    const std::string topic = its == topics.end() ? "a topic" : "topic " + its->first;
    return taken(topic + " has its own user of this name; delete the topic or choose another name");
  }
  if (request.uid && state.user_of_uid(*request.uid) != nullptr)
    return taken("uid: another user has it: " + state.user_of_uid(*request.uid)->name());
  if (state.users().size() >= settings_.users_max) {
    count(settings_.limits_reached, Limit::users_max);
    return Error{ErrorCode::limit_reached,
                 "there are " + std::to_string(settings_.users_max) + " users, the maximum (users_max)"};
  }
  return std::nullopt;
}

void CommandHandler::execute(protocol::CreateUser request, const Answer& answer) {
  protocol::Credentials admin = std::move(request.admin);
  const auto kept = std::make_shared<protocol::CreateUser>(std::move(request));
  permit_someone("create_user", std::move(admin), answer, [this, kept, answer](const UserRecord* user) {
    const TicketHolder asker = asker_of(user);
    if (!is_still_admin(asker)) return refuse_without_admin("create_user", *user, answer);
    if (const auto refused = objection_to(*kept)) {
      return answer(error_reply("create_user", *refused));
    }
    if (kept->user.password.empty()) return create_user(*kept, {}, answer);
    authenticator_.hash(
        Secret(kept->user.password),
        [this, kept, asker, answer](const Result<std::string>& argon2) {
          if (!argon2) return answer(error_reply("create_user", argon2.error()));
          if (!is_still_admin(asker)) return refuse("create_user", AuthOutcome::wrong, answer);
          create_user(*kept, argon2.value(), answer);
        },
        answer.source().key, name_of(asker));
  });
}

void CommandHandler::create_user(const protocol::CreateUser& request, const std::string& argon2,
                                 const Answer& answer) {
  // Another user may have taken the name while the password was hashed.
  if (const auto refused = objection_to(request)) return answer(error_reply("create_user", *refused));
  UserRecord user;
  user.credential = {0, request.user.user_id, argon2};
  user.is_admin = request.is_admin;
  user.uid = request.uid;
  for (const TopicRight& right : request.rights) {
    if (const auto added = add_right(user.rights, right, settings_.rights_per_user_max); !added) {
      count(settings_.limits_reached, Limit::rights_per_user_max);
      return answer(error_reply("create_user", added.error()));
    }
  }
  put_user("create_user", catalogue_.add_user(std::move(user)), answer);
}

void CommandHandler::execute(protocol::DeleteUser request, const Answer& answer) {
  permit_admin("delete_user", std::move(request.admin), answer, [this, name = request.user_id, answer] {
    const UserRecord* const user = catalogue_.state().user(name);
    if (user == nullptr) return answer(error_reply("delete_user", no_such_user(name)));
    const std::uint64_t id = user->id;
    if (const auto removed = catalogue_.remove_user(id); !removed)
      return answer(error_reply("delete_user", removed.error()));
    bring_into_force(
        "delete_user",
        [this, id](DataPlane::Done<Result<void>> done) { data_plane_.remove_user(id, std::move(done)); },
        answer);
  });
}

void CommandHandler::execute(protocol::GrantRights request, const Answer& answer) {
  protocol::Credentials admin = std::move(request.admin);
  permit_admin(
      "grant", std::move(admin), answer, [this, name = request.user_id, right = request.right, answer] {
        const UserRecord* const user = catalogue_.state().user(name);
        if (user == nullptr) return answer(error_reply("grant", no_such_user(name)));
        UserRecord changed = *user;
        if (const auto added = add_right(changed.rights, right, settings_.rights_per_user_max); !added) {
          count(settings_.limits_reached, Limit::rights_per_user_max);
          return answer(error_reply("grant", added.error()));
        }
        if (const auto put = catalogue_.put_user(changed); !put)
          return answer(error_reply("grant", put.error()));
        put_user("grant", changed, answer);
      });
}

void CommandHandler::execute(protocol::RevokeRights request, const Answer& answer) {
  protocol::Credentials admin = std::move(request.admin);
  permit_admin(
      "revoke", std::move(admin), answer, [this, name = request.user_id, right = request.right, answer] {
        const UserRecord* const user = catalogue_.state().user(name);
        if (user == nullptr) return answer(error_reply("revoke", no_such_user(name)));
        UserRecord changed = *user;
        if (!take_right(changed.rights, right)) {
          return answer(error_reply(
              "revoke", {ErrorCode::invalid_request,
                         "rights: " + name + " has none of these rights with the pattern " + right.topic}));
        }
        if (const auto put = catalogue_.put_user(changed); !put)
          return answer(error_reply("revoke", put.error()));
        put_user("revoke", changed, answer);
      });
}

void CommandHandler::execute(protocol::SetPassword request, const Answer& answer) {
  protocol::Credentials asker = std::move(request.asker);
  const auto kept = std::make_shared<protocol::SetPassword>(std::move(request));
  if (kept->topic) {
    return permit_topic("set_password", std::move(asker), kept->as_admin, {protocol::Right::manage},
                        *kept->topic, answer, [this, kept, answer](TopicId id, const TicketHolder& holder) {
                          set_topic_password(id, *kept, holder, answer);
                        });
  }
  permit_someone("set_password", std::move(asker), answer, [this, kept, answer](const UserRecord* user) {
    const bool may = user == nullptr || user->is_admin || user->name() == kept->user_id;
    if (!may) return refuse_without_admin("set_password", *user, answer);
    set_user_password(*kept, asker_of(user), answer);
  });
}

void CommandHandler::set_user_password(const protocol::SetPassword& request, const TicketHolder& asker,
                                       const Answer& answer) {
  const UserRecord* const user = catalogue_.state().user(request.user_id);
  if (user == nullptr) return answer(error_reply("set_password", no_such_user(request.user_id)));
  authenticator_.hash(
      Secret(request.new_password),
      [this, name = request.user_id, id = user->id, asker, answer](const Result<std::string>& argon2) {
        if (!argon2) return answer(error_reply("set_password", argon2.error()));
        const UserRecord* const now = catalogue_.state().user(name);
        if (now == nullptr || now->id != id) return answer(error_reply("set_password", no_such_user(name)));
        // A password that was set meanwhile is newer than the permission of this request.
        const bool is_self = asker_of(now) == asker;
        if (!is_self && !is_still_admin(asker)) return refuse("set_password", AuthOutcome::wrong, answer);
        put_user("set_password", catalogue_.set_user_password(*now, argon2.value()), answer);
      },
      answer.source().key, name_of(asker));
}

void CommandHandler::set_topic_password(TopicId topic, const protocol::SetPassword& request,
                                        const TicketHolder& asker, const Answer& answer) {
  const TopicEntry* const entry = catalogue_.state().find(topic);
  const CredentialRecord* const own = catalogue_.state().credential(entry->credential_id);
  const bool named = !request.as_admin || request.user_id.empty();
  if (own == nullptr || (!named && own->user_id != request.user_id)) {
    return answer(
        error_reply("set_password", {ErrorCode::invalid_request, "user_id: not the topic's own user"}));
  }
  const auto user = std::make_shared<protocol::Credentials>(own->user_id, request.new_password);
  enrol(
      *user, asker,
      [this, topic, user, asker, answer](const Result<Enrolment>& enrolment) {
        const TopicEntry* const now = catalogue_.state().find(topic);
        const bool own_user = now != nullptr && asker.user != 0 && now->credential_id == asker.user;
        const bool may = now == nullptr || own_user || still_manages(asker, now->definition.name.text());
        if (!may) {
          refuse("set_password", AuthOutcome::wrong, answer);
        } else if (enrolment) {
          replace_credential(topic, *user, enrolment.value(), answer);
        } else {
          answer(error_reply("set_password", enrolment.error()));
        }
      },
      answer);
}

void CommandHandler::replace_credential(TopicId topic, const protocol::Credentials& user,
                                        const Enrolment& enrolment, const Answer& answer) {
  if (catalogue_.state().find(topic) == nullptr)
    return answer(error_reply("set_password", {ErrorCode::topic_not_found, "topic not found"}));
  // Always add a new credential, because tickets name their credential. The password may be a former one that
  // another topic still uses. Tickets of that time must not become valid again.
  const CredentialRecord* const known = catalogue_.state().credential(enrolment.known_id);
  if (enrolment.known_id != 0 && known == nullptr) {
    return answer(error_reply("set_password",
                              {ErrorCode::busy, "another command is removing the topic's user; try again"}));
  }
  const auto id =
      catalogue_.add_credential(user.user_id, known == nullptr ? enrolment.argon2 : known->argon2);
  if (!id) return answer(error_reply("set_password", id.error()));
  authenticator_.remember(id.value(), user);
  if (const auto set = catalogue_.set_topic_credential(topic, id.value()); !set)
    return answer(error_reply("set_password", set.error()));
  bring_into_force(
      "set_password",
      [this, topic](DataPlane::Done<Result<void>> done) {
        const TopicEntry* const now = catalogue_.state().find(topic);
        data_plane_.set_owner(topic, now == nullptr ? 0 : now->credential_id, std::move(done));
      },
      answer);
}

void CommandHandler::execute(protocol::ListUsers request, const Answer& answer) {
  permit_admin("list_users", std::move(request.admin), answer, [this, answer] {
    protocol::UserListReply reply;
    for (const auto& [name, user] : catalogue_.state().users())
      reply.users.push_back({name, user.is_admin, user.uid, user.rights});
    answer(std::move(reply));
  });
}

}  // namespace lightq::broker
