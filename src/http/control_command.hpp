/// Makes commands of the control protocol of requests over HTTP. Layer: http. docs/http.md, "Commands".
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "http/router.hpp"

namespace lightq::broker {

/// The credentials that a command takes, of those that a request has.
enum class CommandLogin {
  none,
  user,   ///< `user_id`, `password`; may be missing for an open topic
  admin,  ///< `admin_user_id`, `admin_password`
  own,    ///< those of a user who changes its own password, else those of an administrator
};

/// A resource: one command of the control protocol. Plain data, of static lifetime.
struct CommandRoute {
  std::string_view method;
  std::string_view path;  ///< each `{NAME}` is the member NAME of the command
  std::string_view cmd;
  CommandLogin login = CommandLogin::user;
  /// The parameters of the URL that are members of the command, separated by spaces. Those that begin with #
  /// are numbers, those with ? are `true` or `false`, the others are texts.
  std::string_view parameters = {};
  bool has_content = false;  ///< the members of the content, an object, are members of the command
  unsigned status = 200;
};

/// Returns all commands that are resources.
std::span<const CommandRoute> command_routes();

/// Makes the command of a request. Its members are those of the path, then of the parameters, then of the
/// content; none may be given twice, and credentials come from the login alone. Errors: as of
/// protocol::parse_request; unauthorized_access without a login that is needed.
Result<protocol::Request> command_of(const CommandRoute& route, const HttpExchange& exchange,
                                     std::size_t bytes_max);

}  // namespace lightq::broker
