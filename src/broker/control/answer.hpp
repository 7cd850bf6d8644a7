/// How a request is answered, and whom it came from. Layer: control.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

#include <lightq/protocol/control.hpp>

#include "broker/control/request_source.hpp"

namespace lightq::broker {

/// Called once, on the control loop's thread. Copies are the same answer.
class Answer {
 public:
  template <std::invocable<protocol::Reply> Send>
    requires(!std::same_as<std::remove_cvref_t<Send>, Answer>)
  Answer(Send send, RequestSource source = {})  // NOLINT(google-explicit-constructor): any callable is one
      : send_(std::move(send)), source_(std::make_shared<const RequestSource>(std::move(source))) {}

  void operator()(protocol::Reply reply) const { send_(std::move(reply)); }
  [[nodiscard]] const RequestSource& source() const { return *source_; }

 private:
  std::function<void(protocol::Reply)> send_;
  std::shared_ptr<const RequestSource> source_;
};

}  // namespace lightq::broker
