/// Who may ask what. Layer: control.
#include "broker/control/command_handler.hpp"

#include <memory>
#include <utility>
#include <variant>

#include "broker/control/secret.hpp"

namespace lightq::broker {

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

void CommandHandler::permit_admin(std::string_view cmd, protocol::Credentials given, const Answer& answer,
                                  Permitted permitted) {
  authenticator_.verify_admin(std::move(given), [=, this](AuthOutcome outcome) {
    if (outcome != AuthOutcome::right) return refuse(cmd, outcome, answer);
    permitted();
  });
}

void CommandHandler::permit_topic(std::string_view cmd, protocol::Credentials given, bool as_admin,
                                  const TopicName& topic, const Answer& answer, WithTopic then) {
  if (!as_admin && !authenticator_.is_admin(given.user_id)) {
    return permit_user(cmd, std::move(given), topic, answer, std::move(then));
  }
  permit_admin(cmd, std::move(given), answer,
               [=, this, then = std::move(then)] { with_topic(cmd, topic, answer, then); });
}

void CommandHandler::permit_user(std::string_view cmd, protocol::Credentials given, const TopicName& topic,
                                 const Answer& answer, WithTopic then) {
  const auto& state = catalogue_.state();
  const TopicEntry* entry = state.find(topic.text());
  const bool anybody = entry != nullptr && entry->credential_id == 0 && entry->definition.settings.open;
  if (anybody) {
    wipe(given.password);
    return with_topic(cmd, topic, answer, then);
  }
  if (given.user_id.empty()) return refuse(cmd, AuthOutcome::wrong, answer);

  // Of a topic that does not exist, or belongs to nobody, only somebody's right credentials learn more.
  const CredentialRecord* credential = nullptr;
  const bool owned = entry != nullptr && entry->credential_id != 0;
  if (owned) {
    credential = state.credential(entry->credential_id);
  } else if (const auto known = authenticator_.remembered(given); known != 0 && state.in_use(known)) {
    credential = state.credential(known);
  } else {
    credential = state.credential_of(given.user_id);
  }
  authenticator_.verify(credential, std::move(given),
                        [=, this, exists = entry != nullptr, then = std::move(then)](AuthOutcome outcome) {
                          const bool may = outcome == AuthOutcome::right && (owned || !exists);
                          if (may) return with_topic(cmd, topic, answer, then);
                          refuse(cmd, outcome == AuthOutcome::busy ? outcome : AuthOutcome::wrong, answer);
                        });
}

void CommandHandler::with_topic(std::string_view cmd, const TopicName& topic, const Answer& answer,
                                const WithTopic& then) {
  const TopicEntry* entry = catalogue_.state().find(topic.text());
  if (entry == nullptr || not_ready_.contains(entry->definition.id.value)) {
    return answer(error_reply(cmd, {ErrorCode::topic_not_found, "topic not found"}));
  }
  const TopicId id = entry->definition.id;
  if (const auto failed = failed_.find(id.value); failed != failed_.end()) {
    return answer(error_reply(cmd, failed->second));
  }
  then(id);
}

}  // namespace lightq::broker
