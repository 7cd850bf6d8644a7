/// Whose credentials a request shows, and what is said when they are missing or refused. Layer: client.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include <lightq/base/error.hpp>
#include <lightq/base/shown_uri.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1::detail {

/// The credentials that the request shows, which may be empty; null: it is of a kind that shows none.
inline const protocol::Credentials* credentials_of(const protocol::Request& request) {
  return std::visit(
      [](const auto& one) -> const protocol::Credentials* {
        if constexpr (requires { one.admin; }) {
          return &one.admin;
        } else if constexpr (requires { one.asker; }) {
          return &one.asker;
        } else if constexpr (requires { one.user; }) {
          return &one.user;
        } else {
          return nullptr;
        }
      },
      request);
}

/// Returns true if a broker refuses the request of anybody without credentials. All other requests may be of
/// an open topic, or by a user whom the broker knows by the process.
inline bool needs_credentials(const protocol::Request& request) {
  if (const auto* stats = std::get_if<protocol::Stats>(&request)) return !stats->topic;
  if (const auto* set = std::get_if<protocol::SetPassword>(&request)) return !set->topic;
  return std::visit([](const auto& one) { return requires { one.admin; }; }, request);
}

/// The error of a request that needs credentials and has none.
inline Error no_credentials_error(const protocol::Request& request) {
  return {ErrorCode::unauthorized_access, std::string(protocol::command_of(request)) +
                                              " needs a user, and no credentials were given or found"};
}

/// Names the user where the broker only says `unauthorized_access`, which is its answer to credentials that
/// are nobody's.
inline Error with_user(Error error, const protocol::Request& request) {
  if (error.code != ErrorCode::unauthorized_access || error.message != "unauthorized_access") return error;
  const protocol::Credentials* const shown = credentials_of(request);
  if (shown == nullptr) return error;
  if (shown->user_id.empty()) return no_credentials_error(request);
  error.message = "user '" + shown_user(shown->user_id) +
                  "' is refused: there is no such user, or the password is another";
  return error;
}

/// The topic that a request is about; empty: none.
inline std::string topic_of(const protocol::Request& request) {
  return std::visit(
      [](const auto& one) -> std::string {
        if constexpr (requires { one.topic.text(); }) {
          return one.topic.text();
        } else if constexpr (requires { one.topic->text(); }) {
          return one.topic ? one.topic->text() : std::string();
        } else {
          return {};
        }
      },
      request);
}

/// Names the topic, the user and the broker, as far as the error does not do so.
inline Error with_context(Error error, const protocol::Request& request, const std::string& uri) {
  std::string context;
  const auto name = [&](const std::string& what, const std::string& shown) {
    if (shown.empty() || error.message.find(shown) != std::string::npos) return;
    context += (context.empty() ? "" : ", ") + what + shown;
  };
  const std::string topic = topic_of(request);
  if (!topic.empty()) name("topic ", "'" + topic + "'");
  const protocol::Credentials* const shown = credentials_of(request);
  if (shown != nullptr && !shown->user_id.empty()) name("user ", "'" + shown_user(shown->user_id) + "'");
  name("broker ", uri);
  if (!context.empty()) error.message += " (" + context + ")";
  return error;
}

}  // namespace lightq::inline v1::detail
