/// The origin of a control request, and its course from arrival to reply. Layer: control.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <lightq/base/error.hpp>

#include "net/request_source.hpp"

namespace lightq::broker {

/// The number of the user that makes a request. 0: the administrator; no value: an unauthenticated client of
/// an open topic.
using AskerId = std::optional<std::uint64_t>;

/// A control request from its arrival to its reply, as the control socket counts it. RequestContext describes
/// the functions, under the same names. Thread: the control loop's.
class RequestCourse {
 public:
  virtual ~RequestCourse() = default;
  virtual void stand_aside(bool aside) = 0;
  virtual std::optional<Error> asked_by(const AskerId& asker) = 0;
  virtual void worked(std::uint64_t bytes) = 0;
};

/// Where a request came from, and its course. Permission checks see a request as this, not as a command with
/// a reply. Copies refer to the same request. Thread: the control loop's.
class RequestContext {
 public:
  explicit RequestContext(RequestSource source = {}, std::shared_ptr<RequestCourse> course = {})
      : source_(std::make_shared<const RequestSource>(std::move(source))), course_(std::move(course)) {}

  [[nodiscard]] const RequestSource& source() const { return *source_; }
  /// Excludes the request from the count of requests under way (`aside` true), or includes it again. Used
  /// while the request waits in a queue that has its own bound.
  void stand_aside(bool aside) const {
    if (course_) course_->stand_aside(aside);
  }
  /// Reports the identity of the asker, after its credentials were verified or when none are needed. If this
  /// returns an error, send that error as the reply: the asker has too many requests.
  [[nodiscard]] std::optional<Error> asked_by(const AskerId& asker) const {
    return course_ ? course_->asked_by(asker) : std::nullopt;
  }
  /// Adds to the cost of the reply. Call it before the reply if producing the reply takes as much work as a
  /// reply of `bytes` bytes, and the reply may be shorter.
  void worked(std::uint64_t bytes) const {
    if (course_) course_->worked(bytes);
  }

 private:
  std::shared_ptr<const RequestSource> source_;
  std::shared_ptr<RequestCourse> course_;
};

}  // namespace lightq::broker
