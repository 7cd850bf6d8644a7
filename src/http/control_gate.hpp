/// The way from HTTP to the operations of the control thread. Layer: http.
#pragma once

#include <functional>
#include <utility>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "control/answer.hpp"
#include "control/commands/operations.hpp"
#include "control/request_context.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/permissions.hpp"
#include "http/router.hpp"
#include "net/event_loop.hpp"
#include "net/request_source.hpp"

namespace lightq::broker {

/// Checks the login of a request by the same rules as the control socket: the same users, the same queue of
/// passwords, and the same delays for wrong ones. Then executes operations on the control thread.
/// Lifetime: the parts outlive it, and the control loop may call the callbacks as long as it runs.
class ControlGate {
 public:
  struct Parts {
    EventLoop& control;
    Permissions& permissions;
    Operations& operations;
    /// Executes a command of the control protocol, as for the control socket. Thread: the control thread.
    std::function<void(protocol::Request request, const Answer& answer)> execute;
  };
  /// Executes operations. It calls `reply` once, immediately or later. Thread: the control thread.
  using Work = std::function<void(const Asker& asker, Operations& operations, const HttpReply& reply)>;

  explicit ControlGate(Parts parts) : parts_(std::move(parts)) {}

  /// Calls `work` with the user that the request's HTTP Basic credentials name. Without correct ones, answers
  /// 401. Thread: the HTTP thread.
  void as_user(HttpExchange exchange, Work work) const;
  /// Executes a command, whose credentials it contains. Calls `done` once with the reply, on the control
  /// thread; with the error `busy` at once if the control thread has too many tasks. Thread: any.
  void command(protocol::Request request, const RequestSource& source,
               std::function<void(protocol::Reply reply)> done) const;
  /// Calls `work` with the user that the request's HTTP Basic credentials name, if it has this right on the
  /// topic; with open topics also without a user. Otherwise answers with the error: 401 without correct
  /// credentials. Thread: the HTTP thread.
  void on_topic(HttpExchange exchange, const TopicName& topic, Permissions::Need need, Work work) const;
  /// Calls `work` on the control thread, for the broker's own purposes. Returns false if the control thread
  /// has too many tasks. Thread: any.
  [[nodiscard]] bool as_broker(std::function<void(Operations& operations)> work) const;

 private:
  /// Returns the response for an error of the check.
  using Refused = HttpResponse (*)(const Error& error);
  /// Checks credentials. Thread: the control thread.
  using Permit = std::function<void(protocol::Credentials credentials, const RequestContext& context,
                                    const Permissions::Then& then)>;
  void with_credentials(HttpExchange exchange, Refused refused, Work work, Permit permit) const;

  const Parts parts_;
};

}  // namespace lightq::broker
