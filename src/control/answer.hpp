/// The reply function of a control request. Layer: control.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <lightq/protocol/control.hpp>

#include "control/request_context.hpp"
#include "net/request_source.hpp"

namespace lightq::broker {

/// Sends the reply to one request. Call it exactly once, on the control loop's thread. Copies refer to the
/// same reply.
class Answer : public RequestContext {
 public:
  template <std::invocable<protocol::Reply> Send>
    requires(!std::same_as<std::remove_cvref_t<Send>, Answer>)
  Answer(Send send, RequestSource source = {},  // NOLINT(google-explicit-constructor): any callable is one
         std::shared_ptr<RequestCourse> course = {})
      : RequestContext(std::move(source), std::move(course)), send_(std::move(send)) {}

  void operator()(protocol::Reply reply) const { send_(std::move(reply)); }

 private:
  std::function<void(protocol::Reply)> send_;
};

}  // namespace lightq::broker
