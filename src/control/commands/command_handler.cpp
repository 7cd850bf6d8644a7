/// The permission checks of control requests. Layer: control.
#include "control/commands/command_handler.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include <lightq/base/shown_uri.hpp>

#include "access/secret.hpp"

namespace lightq::broker {

namespace {

/// Returns the Asking::subject of a request that the topic's own user may make.
std::string subject_of(const TopicName& topic) {
  return "topic " + topic.text();
}

Error topic_not_found() {
  return {ErrorCode::topic_not_found, "topic not found"};
}

/// Returns a user's name for a command that can be copied; a placeholder if a shell would not take it as one
/// word.
std::string name_in_command(const std::string& name) {
  const auto is_plain = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
           each == '.' || each == '_' || each == '-' || each == '@';
  };
  return std::ranges::all_of(name, is_plain) && !name.starts_with('-') ? name : "NAME";
}

std::string_view word_of(protocol::Right right) {
  if (right == protocol::Right::produce) return "produce";
  return right == protocol::Right::consume ? "consume" : "manage";
}

}  // namespace

protocol::Reply error_reply(std::string_view cmd, const Error& error) {
  return protocol::ErrorReply{std::string(cmd), error.code, error.text()};
}

CommandHandler::CommandHandler(Parts parts, Settings settings)
    : loop_(parts.loop),
      catalogue_(parts.catalogue),
      authenticator_(parts.authenticator),
      data_plane_(parts.data_plane),
      sink_(parts.sink),
      settings_(std::move(settings)),
      since_ms_(settings_.now().us / 1000),
      commits_(parts.loop, parts.catalogue) {}

void CommandHandler::handle(protocol::Request request, Answer answer) {
  if (stopping_) {
    return answer(error_reply(command_of(request), {ErrorCode::shutting_down, "the broker is stopping"}));
  }
  std::visit([&](auto& one) { execute(std::move(one), answer); }, request);
}

void CommandHandler::refuse(std::string_view cmd, AuthOutcome outcome, const Answer& answer) {
  if (outcome == AuthOutcome::busy) {
    return answer(
        error_reply(cmd, {ErrorCode::busy, "too many passwords are waiting to be checked; try again"}));
  }
  authenticator_.count_failure();
  answer(error_reply(cmd, {ErrorCode::unauthorized_access, "unauthorized_access"}));
}

void CommandHandler::refuse_without_right(std::string_view cmd, const UserRecord& user, const Need& need,
                                          const std::string& topic, const Answer& answer) {
  authenticator_.count_failure();
  const std::string right(word_of(need.right.value_or(protocol::Right::consume)));
  const std::string group = need.right == protocol::Right::manage ? need.scope.group() : std::string();
  const std::string where =
      (group.empty() ? std::string() : "group '" + group + "' of ") + "topic '" + topic + "'";
  answer(error_reply(
      cmd, {ErrorCode::unauthorized_access,
            "user '" + shown_user(user.name()) + "' " +
                (need.right ? "lacks the right '" + right + "'" : "has no right") + " on " + where +
                "; an administrator can grant it:  lightq user grant " + name_in_command(user.name()) +
                " --" + right + " " + topic + (group.empty() ? std::string() : ":" + group)}));
}

void CommandHandler::refuse_without_admin(std::string_view cmd, const UserRecord& user,
                                          const Answer& answer) {
  authenticator_.count_failure();
  answer(error_reply(
      cmd, {ErrorCode::unauthorized_access,
            "user '" + shown_user(user.name()) + "' is not an administrator, and this command needs one"}));
}

void CommandHandler::verify(const CredentialRecord* credential, protocol::Credentials given,
                            const Answer& answer, const std::string& subject,
                            Authenticator::VerifyDone done) {
  // The authenticator bounds its own queue, and a waiting password blocks no other request.
  answer.stand_aside(true);
  authenticator_.verify(credential, std::move(given),
                        [answer, done = std::move(done)](AuthOutcome outcome) {
                          answer.stand_aside(false);
                          done(outcome);
                        },
                        {.source = answer.source().key, .subject = subject});
}

void CommandHandler::verify_user(std::string_view cmd, const UserRecord& user, protocol::Credentials given,
                                 const Answer& answer, const std::string& subject, WithUser then) {
  // A user without a password takes the same work as an unknown user.
  const CredentialRecord* const credential = user.credential.argon2.empty() ? nullptr : &user.credential;
  verify(credential, std::move(given), answer, subject,
         [=, this, name = user.name(), id = user.id, generation = user.generation,
          then = std::move(then)](AuthOutcome outcome) {
           if (outcome != AuthOutcome::right) return refuse(cmd, outcome, answer);
           // The user may have been changed or deleted meanwhile.
           const UserRecord* const now = catalogue_.state().user(name);
           const bool same = now != nullptr && now->id == id && now->generation == generation;
           if (!same) return refuse(cmd, AuthOutcome::wrong, answer);
           if (const auto busy = answer.asked_by(id)) return answer(error_reply(cmd, *busy));
           then(now);
         });
}

void CommandHandler::permit_someone(std::string_view cmd, protocol::Credentials given, const Answer& answer,
                                    WithUser then, const std::string& subject) {
  const UserRecord* const user = catalogue_.state().user(given.user_id);
  if (user != nullptr && !authenticator_.is_admin(given.user_id))
    return verify_user(cmd, *user, std::move(given), answer, subject, std::move(then));
  const CredentialRecord* const credential = authenticator_.admin_credential(given.user_id);
  verify(credential, std::move(given), answer, subject,
         [=, this, then = std::move(then)](AuthOutcome outcome) {
           if (outcome != AuthOutcome::right) return refuse(cmd, outcome, answer);
           if (const auto busy = answer.asked_by(0)) return answer(error_reply(cmd, *busy));
           then(nullptr);
         });
}

void CommandHandler::permit_admin(std::string_view cmd, protocol::Credentials given, const Answer& answer,
                                  Permitted permitted) {
  permit_someone(cmd, std::move(given), answer,
                 [=, this, permitted = std::move(permitted)](const UserRecord* user) {
                   if (user != nullptr && !user->is_admin) return refuse_without_admin(cmd, *user, answer);
                   permitted();
                 });
}

bool CommandHandler::is_still_admin(const TicketHolder& asker) const {
  if (asker.user == 0) return true;  // the administrator's password does not change while the broker runs
  const UserRecord* const user = catalogue_.state().user_of_id(asker.user);
  return user != nullptr && user->generation == asker.generation && user->is_admin;
}

bool CommandHandler::still_manages(const TicketHolder& asker, const std::string& topic) const {
  if (asker.user == 0) return true;
  const UserRecord* const user = catalogue_.state().user_of_id(asker.user);
  return user != nullptr && user->generation == asker.generation && user->may(protocol::Right::manage, topic);
}

void CommandHandler::permit_manager(std::string_view cmd, protocol::Credentials given, const TopicName& topic,
                                    const Answer& answer, WithUser then) {
  permit_someone(cmd, std::move(given), answer, [=, this, then = std::move(then)](const UserRecord* user) {
    constexpr auto manage = protocol::Right::manage;
    const bool may = user == nullptr || user->may(manage, topic.text());
    if (!may) return refuse_without_right(cmd, *user, {manage}, topic.text(), answer);
    then(user);
  });
}

/// Returns the user of the process at the other end of a Unix socket, if the request has no credentials;
/// otherwise null.
const UserRecord* CommandHandler::user_of_peer(const protocol::Credentials& given,
                                               const Answer& answer) const {
  const auto& uid = answer.source().uid;
  if (!given.user_id.empty() || !uid) return nullptr;
  return catalogue_.state().user_of_uid(*uid);
}

void CommandHandler::permit_topic(std::string_view cmd, protocol::Credentials given, bool as_admin, Need need,
                                  const TopicName& topic, const Answer& answer, WithTopic then) {
  const auto& state = catalogue_.state();
  const TopicEntry* const entry = state.find(topic.text());
  // Every client may use the messages of an open topic, but not manage it.
  const bool anybody = entry != nullptr && entry->credential_id == 0 && entry->definition.settings.open &&
                       need.right != protocol::Right::manage;
  WithUser decide = [=, this](const UserRecord* user) {
    if (user == nullptr)
      return with_topic(cmd, topic, {.user = 0, .generation = settings_.admin_generation}, answer, then);
    const bool may =
        need.right ? user->may(*need.right, topic.text(), need.scope) : user->knows(topic.text());
    if (!may) return refuse_without_right(cmd, *user, need, topic.text(), answer);
    with_topic(cmd, topic, {user->id, user->generation}, answer, then);
  };
  if (!as_admin && !authenticator_.is_admin(given.user_id)) {
    if (anybody) {
      if (const auto busy = answer.asked_by(std::nullopt)) return answer(error_reply(cmd, *busy));
      return with_topic(cmd, topic, {}, answer, then);
    }
    if (const UserRecord* const user = user_of_peer(given, answer)) {
      if (const auto busy = answer.asked_by(user->id)) return answer(error_reply(cmd, *busy));
      return decide(user);
    }
    if (state.user(given.user_id) == nullptr)
      return permit_topics_own(cmd, std::move(given), topic, answer, std::move(then));
  }
  // Users are found by name alone, own users of topics by topic. Both paths look the same to the client.
  permit_someone(cmd, std::move(given), answer, std::move(decide),
                 as_admin ? std::string() : subject_of(topic));
}

void CommandHandler::permit_topics_own(std::string_view cmd, protocol::Credentials given,
                                       const TopicName& topic, const Answer& answer, WithTopic then) {
  if (given.user_id.empty()) return refuse(cmd, AuthOutcome::wrong, answer);

  // Only correct credentials reveal more about a topic that does not exist or belongs to another user. Even
  // then the replies are the same in both cases.
  const auto& state = catalogue_.state();
  const TopicEntry* const entry = state.find(topic.text());
  const CredentialRecord* credential = entry == nullptr ? nullptr : state.credential(entry->credential_id);
  if (credential == nullptr || credential->user_id != given.user_id) {
    const auto known = authenticator_.remembered(given);
    credential = state.in_use(known) ? state.credential(known) : state.credential_of(given.user_id);
  }
  const std::uint64_t verified = credential == nullptr ? 0 : credential->id;
  verify(credential, std::move(given), answer, subject_of(topic),
         [=, this, then = std::move(then)](AuthOutcome outcome) {
           if (outcome != AuthOutcome::right) return refuse(cmd, outcome, answer);
           if (const auto busy = answer.asked_by(verified)) return answer(error_reply(cmd, *busy));
           const TopicEntry* const now = catalogue_.state().find(topic.text());
           if (now != nullptr && now->credential_id != verified)
             return answer(error_reply(cmd, topic_not_found()));
           with_topic(cmd, topic, {.user = verified, .generation = 0}, answer, then);
         });
}

void CommandHandler::with_topic(std::string_view cmd, const TopicName& topic, const TicketHolder& holder,
                                const Answer& answer, const WithTopic& then) {
  const TopicEntry* entry = catalogue_.state().find(topic.text());
  if (entry == nullptr || not_ready_.contains(entry->definition.id.value)) {
    return answer(error_reply(cmd, topic_not_found()));
  }
  const TopicId id = entry->definition.id;
  if (const auto failed = failed_.find(id.value); failed != failed_.end()) {
    return answer(error_reply(cmd, failed->second));
  }
  then(id, holder);
}

}  // namespace lightq::broker
