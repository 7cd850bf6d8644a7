/// Reads the credentials out of a request, and makes the errors for missing or refused ones. Layer: client.
#pragma once

#include <cctype>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include <lightq/base/error.hpp>
#include <lightq/base/shown_uri.hpp>
#include <lightq/protocol/control.hpp>

namespace lightq::inline v1::detail {

/// Returns the credentials in a request, which may be empty; null if requests of this kind have none.
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

/// Returns true if a broker refuses this request without credentials. It may allow other requests without
/// them: for an open topic, or if it identifies the user by the client's process.
inline bool needs_credentials(const protocol::Request& request) {
  if (const auto* stats = std::get_if<protocol::Stats>(&request)) return !stats->topic;
  if (const auto* set = std::get_if<protocol::SetPassword>(&request)) return !set->topic;
  return std::visit([](const auto& one) { return requires { one.admin; }; }, request);
}

/// Returns the error for a request that needs credentials and has none.
inline Error no_credentials_error(const protocol::Request& request) {
  return {ErrorCode::unauthorized_access, std::string(protocol::command_of(request)) +
                                              " needs a user, and no credentials were given or found"};
}

/// Adds the user to an error that only says `unauthorized_access`. That is the broker's answer to an unknown
/// user or a wrong password.
inline Error with_user(Error error, const protocol::Request& request) {
  if (error.code != ErrorCode::unauthorized_access || error.message != "unauthorized_access") return error;
  const protocol::Credentials* const shown = credentials_of(request);
  if (shown == nullptr) return error;
  if (shown->user_id.empty()) return no_credentials_error(request);
  error.message = "user '" + shown_user(shown->user_id) +
                  "' is refused: the user does not exist, or the password is wrong";
  return error;
}

/// Returns the topic of a request; empty if it has none.
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

/// Returns true if a sentence names the topic, as 'NAME' or as topic NAME.
inline bool names_topic(const std::string& sentence, const std::string& topic) {
  if (sentence.find("'" + topic + "'") != std::string::npos) return true;
  const std::string words = "topic " + topic;
  const std::size_t at = sentence.find(words);
  if (at == std::string::npos) return false;
  const std::size_t end = at + words.size();
  const bool is_longer =
      end < sentence.size() && (std::isalnum(static_cast<unsigned char>(sentence[end])) != 0 ||
                                sentence[end] == '_' || sentence[end] == '-');
  return !is_longer;
}

/// Adds the topic, the user and the broker to an error that does not name them.
inline Error with_context(Error error, const protocol::Request& request, const std::string& uri) {
  std::string context;
  const auto add = [&](const std::string& what) { context += (context.empty() ? "" : ", ") + what; };
  const std::string topic = topic_of(request);
  if (!topic.empty() && !names_topic(error.message, topic)) add("topic '" + topic + "'");
  const protocol::Credentials* const shown = credentials_of(request);
  if (shown != nullptr && !shown->user_id.empty()) {
    const std::string user = "'" + shown_user(shown->user_id) + "'";
    if (error.message.find(user) == std::string::npos) add("user " + user);
  }
  if (error.message.find(uri) == std::string::npos) add("broker " + uri);
  if (!context.empty()) error.message += " (" + context + ")";
  return error;
}

}  // namespace lightq::inline v1::detail
