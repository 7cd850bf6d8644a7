/// Puts a line into the audit log for each control request. Layer: control.
#pragma once

#include <functional>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "base/audit_trail.hpp"
#include "control/answer.hpp"

namespace lightq::broker {

/// Returns an answer that sends the reply as `answer` does, and puts a line into `trail` first. The line has
/// the time, the source, the user that the request names, the command, its object, and the outcome. It never
/// has a password, a payload or a description. `now` is the wall clock. Returns `answer` itself for `ping`
/// and `version`, which need no permission. Lifetime: `trail` must outlive the answer. Thread: the control
/// loop's.
Answer audited(AuditTrail& trail, const protocol::Request& request, const Answer& answer,
               const std::function<Timestamp()>& now);

/// Returns a source for people: `uid 1000`, `192.0.2.7`, or the network of an IPv6 address,
/// `2001:db8:0:1::/64`. Empty if it is unknown.
std::string shown_source(const RequestSource& source);

}  // namespace lightq::broker
