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
  using Aside = std::function<void(bool)>;

  template <std::invocable<protocol::Reply> Send>
    requires(!std::same_as<std::remove_cvref_t<Send>, Answer>)
  Answer(Send send, RequestSource source = {},  // NOLINT(google-explicit-constructor): any callable is one
         Aside aside = {})
      : send_(std::move(send)),
        source_(std::make_shared<const RequestSource>(std::move(source))),
        aside_(std::move(aside)) {}

  void operator()(protocol::Reply reply) const { send_(std::move(reply)); }
  [[nodiscard]] const RequestSource& source() const { return *source_; }
  /// Whether the request stands aside: it waits for what bounds it by itself, and is not to be counted among
  /// those that are under way.
  void stand_aside(bool aside) const {
    if (aside_) aside_(aside);
  }

 private:
  std::function<void(protocol::Reply)> send_;
  std::shared_ptr<const RequestSource> source_;
  Aside aside_;
};

}  // namespace lightq::broker
