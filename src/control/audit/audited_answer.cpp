/// Puts a line into the audit log for each control request. Layer: control.
#include "control/audit/audited_answer.hpp"

#include <arpa/inet.h>

#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include <lightq/base/shown_uri.hpp>
#include <lightq/protocol/json_fields.hpp>

namespace lightq::broker {

namespace {

using protocol::detail::OrderedJson;

/// Returns a time in UTC with milliseconds: 2026-01-31T12:00:00.123Z.
std::string time_text(Timestamp time) {
  constexpr std::int64_t second_us = 1'000'000;
  const std::time_t seconds = static_cast<std::time_t>(time.us / second_us);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t used = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string ms = std::to_string(1000 + time.us % second_us / 1000);
  return std::string(text.data(), used) + "." + ms.substr(1) + "Z";
}

/// Returns the credentials with which a request asks.
template <typename Asked>
const protocol::Credentials* asking_credentials(const Asked& request) {
  if constexpr (requires { request.asker.user_id; })
    return &request.asker;
  else if constexpr (requires { request.admin.user_id; })
    return &request.admin;
  else if constexpr (requires { request.user.user_id; })
    return &request.user;
  else
    return nullptr;
}

/// Adds the topic, group, schedule and user that a request is about.
template <typename Asked>
void add_object(OrderedJson& line, const Asked& request) {
  if constexpr (requires { request.topic.text(); }) {
    line["topic"] = request.topic.text();
  } else if constexpr (requires { request.topic->text(); }) {
    if (request.topic) line["topic"] = request.topic->text();
  }
  if constexpr (requires { std::string(request.group); }) {
    if (!request.group.empty()) line["group"] = request.group;
  }
  if constexpr (requires { std::string(request.name); }) {
    if (!request.name.empty()) line["schedule"] = request.name;
  }
  if constexpr (requires { request.right.topic; }) line["pattern"] = request.right.topic;
  if constexpr (requires { std::string(request.user_id); }) {
    if (!request.user_id.empty()) line["object_user"] = shown_user(request.user_id);
  } else if constexpr (requires {
                         request.admin.user_id;
                         request.user.user_id;
                       }) {
    if (!request.user.user_id.empty()) line["object_user"] = shown_user(request.user.user_id);
  }
  if constexpr (std::is_same_v<Asked, protocol::CreateUser>) line["admin"] = request.is_admin;
}

/// The line of one request, which the outcome completes. It is the request's course for the permission
/// checks, so it sees whether they accepted the credentials.
class AuditedCourse final : public RequestCourse {
 public:
  AuditedCourse(OrderedJson line, const Answer& answer) : line_(std::move(line)), answer_(answer) {}

  void stand_aside(bool aside) override { answer_.stand_aside(aside); }
  std::optional<Error> asked_by(const AskerId& asker) override {
    verified_ = true;
    return answer_.asked_by(asker);
  }
  void worked(std::uint64_t bytes) override { answer_.worked(bytes); }

  /// Returns the whole line.
  [[nodiscard]] std::string line_with(const protocol::Reply& reply) {
    const auto* const error = std::get_if<protocol::ErrorReply>(&reply);
    line_["allowed"] = verified_ && (error == nullptr || error->code != ErrorCode::unauthorized_access);
    line_["status"] = error == nullptr ? "ok" : "error";
    if (error != nullptr) line_["code"] = to_word(error->code);
    return protocol::detail::dump(line_);
  }

 private:
  OrderedJson line_;
  const Answer answer_;
  bool verified_ = false;
};

}  // namespace

std::string shown_source(const RequestSource& source) {
  if (source.uid) return "uid " + std::to_string(*source.uid);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const std::string_view bytes = std::string_view(source.key).substr(source.key.empty() ? 0 : 1);
  if (source.key.starts_with('4') && bytes.size() == sizeof(in_addr))
    return inet_ntop(AF_INET, bytes.data(), text.data(), text.size());
  if (!source.key.starts_with('6') || bytes.size() > sizeof(in6_addr)) return "";
  in6_addr network{};
  std::memcpy(&network, bytes.data(), bytes.size());
  return std::string(inet_ntop(AF_INET6, &network, text.data(), text.size())) + "/64";
}

Answer audited(AuditTrail& trail, const protocol::Request& request, const Answer& answer,
               const std::function<Timestamp()>& now) {
  const bool needs_permission =
      !std::holds_alternative<protocol::Ping>(request) && !std::holds_alternative<protocol::Version>(request);
  if (!needs_permission) return answer;
  OrderedJson line{{"time", time_text(now())}, {"from", shown_source(answer.source())}};
  std::visit(
      [&](const auto& asked) {
        const protocol::Credentials* const credentials = asking_credentials(asked);
        if (credentials != nullptr && !credentials->user_id.empty())
          line["user"] = shown_user(credentials->user_id);
        line["cmd"] = command_of(request);
        add_object(line, asked);
      },
      request);
  auto course = std::make_shared<AuditedCourse>(std::move(line), answer);
  return {[&trail, course, answer](protocol::Reply reply) {
            trail.put(course->line_with(reply));
            answer(std::move(reply));
          },
          answer.source(), course};
}

}  // namespace lightq::broker
