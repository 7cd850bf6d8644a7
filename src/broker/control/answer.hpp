/// How a request is answered, and whom it came from. Layer: control.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "broker/endpoint/request_source.hpp"

namespace lightq::broker {

/// By whom a request is asked: a user, 0: the administrator; nobody: whoever comes to an open topic.
using Asker = std::optional<std::uint64_t>;

/// A request on its way to its answer, as the control socket counts it. The control loop's thread.
class RequestCourse {
 public:
  virtual ~RequestCourse() = default;
  virtual void stand_aside(bool aside) = 0;
  virtual std::optional<Error> asked_by(const Asker& asker) = 0;
  virtual void worked(std::uint64_t bytes) = 0;
};

/// Called once, on the control loop's thread. Copies are the same answer.
class Answer {
 public:
  template <std::invocable<protocol::Reply> Send>
    requires(!std::same_as<std::remove_cvref_t<Send>, Answer>)
  Answer(Send send, RequestSource source = {},  // NOLINT(google-explicit-constructor): any callable is one
         std::shared_ptr<RequestCourse> course = {})
      : send_(std::move(send)),
        source_(std::make_shared<const RequestSource>(std::move(source))),
        course_(std::move(course)) {}

  void operator()(protocol::Reply reply) const { send_(std::move(reply)); }
  [[nodiscard]] const RequestSource& source() const { return *source_; }
  /// Whether the request stands aside: it waits for what bounds it by itself, and is not to be counted among
  /// those that are under way.
  void stand_aside(bool aside) const {
    if (course_) course_->stand_aside(aside);
  }
  /// To be said when the credentials were right, or none are needed. What comes back is to be the answer
  /// then: its user asks too much.
  [[nodiscard]] std::optional<Error> asked_by(const Asker& asker) const {
    return course_ ? course_->asked_by(asker) : std::nullopt;
  }
  /// To be said before the answer: it took as much work as one of so many bytes, whose length does not show
  /// it. It is charged for that.
  void worked(std::uint64_t bytes) const {
    if (course_) course_->worked(bytes);
  }

 private:
  std::function<void(protocol::Reply)> send_;
  std::shared_ptr<const RequestSource> source_;
  std::shared_ptr<RequestCourse> course_;
};

}  // namespace lightq::broker
