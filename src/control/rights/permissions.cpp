/// Checks the credentials and the rights of the askers of operations. Layer: control.
#include "control/rights/permissions.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/shown_uri.hpp>

namespace lightq::broker {

namespace {

/// Returns the Asking::subject of a request that the topic's own user may make.
std::string subject_of(const TopicName& topic) {
  return "topic " + topic.text();
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

Asker user_asker(const UserRecord& user, const RequestContext& request) {
  return {Asker::Kind::user, {user.id, user.generation}, request.source().key};
}

/// Returns the asker; the error to reply if it has too many requests.
Result<Asker> admitted(Asker asker, const RequestContext& request) {
  if (const auto busy = request.asked_by(asker.id())) return *busy;
  return asker;
}

}  // namespace

Permissions::Permissions(const Catalogue& catalogue, Authenticator& authenticator,
                         std::uint32_t admin_generation)
    : catalogue_(catalogue),
      authenticator_(authenticator),
      admin_generation_(admin_generation),
      rights_(catalogue, [&authenticator] { authenticator.count_failure(); }) {}

void Permissions::permit_user(protocol::Credentials given, const RequestContext& request, const Then& then) {
  identify(std::move(given), request, {}, then);
}

template <typename May, typename Refuse>
Result<Asker> Permissions::only_if(const Result<Asker>& asker, May may, Refuse refuse) const {
  if (!asker || asker.value().is_administrator()) return asker;
  const UserRecord* const user = rights_.user_of(*asker);
  if (user == nullptr) return rights_.refusal();
  if (!may(*user)) return refuse(*user);
  return asker;
}

void Permissions::permit_admin(protocol::Credentials given, const RequestContext& request, const Then& then) {
  identify(std::move(given), request, {}, [this, then](const Result<Asker>& asker) {
    then(only_if(
        asker, [](const UserRecord& user) { return user.is_admin; },
        [&](const UserRecord& user) { return refusal_without_admin(user); }));
  });
}

void Permissions::permit_admin_or(const std::string& user_id, protocol::Credentials given,
                                  const RequestContext& request, const Then& then) {
  identify(std::move(given), request, {}, [this, user_id, then](const Result<Asker>& asker) {
    then(only_if(
        asker, [&](const UserRecord& user) { return user.is_admin || user.name() == user_id; },
        [&](const UserRecord& user) { return refusal_without_admin(user); }));
  });
}

void Permissions::permit_manager(const TopicName& topic, protocol::Credentials given,
                                 const RequestContext& request, const Then& then) {
  identify(std::move(given), request, {}, [this, topic, then](const Result<Asker>& asker) {
    constexpr auto manage = protocol::Right::manage;
    then(only_if(
        asker, [&](const UserRecord& user) { return user.may(manage, topic.text()); },
        [&](const UserRecord& user) { return refusal_without_right(user, {manage}, topic.text()); }));
  });
}

void Permissions::permit_topic(const TopicName& topic, const Need& need, protocol::Credentials given,
                               bool as_admin, const RequestContext& request, const Then& then) {
  const auto& state = catalogue_.state();
  const TopicEntry* const entry = state.find(topic.text());
  // Every client may use the messages of an open topic, but not manage it.
  const bool anybody = entry != nullptr && entry->credential_id == 0 && entry->definition.settings.open &&
                       need.right != protocol::Right::manage;
  const Then decide = [this, topic, need, then](const Result<Asker>& asker) {
    then(only_if(
        asker,
        [&](const UserRecord& user) {
          return need.right ? user.may(*need.right, topic.text(), need.scope) : user.knows(topic.text());
        },
        [&](const UserRecord& user) { return refusal_without_right(user, need, topic.text()); }));
  };
  if (!as_admin && !authenticator_.is_admin(given.user_id)) {
    if (anybody) return then(admitted({Asker::Kind::anonymous, {}, request.source().key}, request));
    if (const UserRecord* const user = user_of_peer(given, request))
      return decide(admitted(user_asker(*user, request), request));
    if (state.user(given.user_id) == nullptr)
      return identify_topic_user(topic, std::move(given), request, then);
  }
  // Users are found by name alone, own users of topics by topic. Both paths look the same to the client.
  identify(std::move(given), request, as_admin ? std::string() : subject_of(topic), decide);
}

void Permissions::identify(protocol::Credentials given, const RequestContext& request,
                           const std::string& subject, const Then& then) {
  const UserRecord* const user = catalogue_.state().user(given.user_id);
  if (user != nullptr && !authenticator_.is_admin(given.user_id))
    return identify_user(*user, std::move(given), request, subject, then);
  const CredentialRecord* const credential = authenticator_.admin_credential(given.user_id);
  verify(credential, std::move(given), request, subject, [this, request, then](AuthOutcome outcome) {
    if (outcome != AuthOutcome::right) return then(refusal(outcome));
    const TicketHolder holder{.user = 0, .generation = admin_generation_};
    then(admitted({Asker::Kind::administrator, holder, request.source().key}, request));
  });
}

void Permissions::identify_user(const UserRecord& user, protocol::Credentials given,
                                const RequestContext& request, const std::string& subject, const Then& then) {
  // A user without a password takes the same work as an unknown user.
  const CredentialRecord* const credential = user.credential.argon2.empty() ? nullptr : &user.credential;
  verify(credential, std::move(given), request, subject,
         [this, asker = user_asker(user, request), request, then](AuthOutcome outcome) {
           if (outcome != AuthOutcome::right) return then(refusal(outcome));
           // The user may have been changed or deleted meanwhile.
           if (rights_.user_of(asker) == nullptr) return then(refusal(AuthOutcome::wrong));
           then(admitted(asker, request));
         });
}

void Permissions::identify_topic_user(const TopicName& topic, protocol::Credentials given,
                                      const RequestContext& request, const Then& then) {
  if (given.user_id.empty()) return then(refusal(AuthOutcome::wrong));

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
  verify(credential, std::move(given), request, subject_of(topic),
         [this, topic, verified, request, then](AuthOutcome outcome) {
           if (outcome != AuthOutcome::right) return then(refusal(outcome));
           const auto asker = admitted(
               {Asker::Kind::topic_user, {.user = verified, .generation = 0}, request.source().key}, request);
           const TopicEntry* const now = catalogue_.state().find(topic.text());
           if (asker && now != nullptr && now->credential_id != verified)
             return then(Error{ErrorCode::topic_not_found, "topic not found"});
           then(asker);
         });
}

void Permissions::verify(const CredentialRecord* credential, protocol::Credentials given,
                         const RequestContext& request, const std::string& subject,
                         Authenticator::VerifyDone done) {
  // The authenticator bounds its own queue, and a waiting password blocks no other request.
  request.stand_aside(true);
  authenticator_.verify(credential, std::move(given),
                        [request, done = std::move(done)](AuthOutcome outcome) {
                          request.stand_aside(false);
                          done(outcome);
                        },
                        {.source = request.source().key, .subject = subject});
}

/// Returns the user of the process at the other end of a Unix socket, if the request has no credentials;
/// otherwise null.
const UserRecord* Permissions::user_of_peer(const protocol::Credentials& given,
                                            const RequestContext& request) const {
  const auto& uid = request.source().uid;
  if (!given.user_id.empty() || !uid) return nullptr;
  return catalogue_.state().user_of_uid(*uid);
}

Error Permissions::refusal(AuthOutcome outcome) const {
  if (outcome == AuthOutcome::busy)
    return {ErrorCode::busy, "too many passwords are waiting to be checked; try again"};
  return rights_.refusal();
}

/// Refuses a user whose password was correct. The error names the user, the missing right and the way to
/// obtain it. It contains only names from the request, so it is the same whether or not the topic exists.
Error Permissions::refusal_without_right(const UserRecord& user, const Need& need,
                                         const std::string& topic) const {
  authenticator_.count_failure();
  const std::string right(word_of(need.right.value_or(protocol::Right::consume)));
  const std::string group = need.right == protocol::Right::manage ? need.scope.group() : std::string();
  const std::string where =
      (group.empty() ? std::string() : "group '" + group + "' of ") + "topic '" + topic + "'";
  return {ErrorCode::unauthorized_access,
          "user '" + shown_user(user.name()) + "' " +
              (need.right ? "lacks the right '" + right + "'" : "has no right") + " on " + where +
              "; an administrator can grant it:  lightq user grant " + name_in_command(user.name()) + " --" +
              right + " " + topic + (group.empty() ? std::string() : ":" + group)};
}

/// Refuses a user whose password was correct a command that only administrators may execute.
Error Permissions::refusal_without_admin(const UserRecord& user) const {
  authenticator_.count_failure();
  return {ErrorCode::unauthorized_access,
          "user '" + shown_user(user.name()) + "' is not an administrator, and this command needs one"};
}

}  // namespace lightq::broker
