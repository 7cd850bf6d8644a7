/// The errors of single requests for messages. Layer: requests.
#pragma once

#include <string>

#include <lightq/base/error.hpp>

#include "delivery/state/client_error.hpp"

namespace lightq::broker {

/// Returns the error for a reason by which a topic refuses or ends a producer or consumer.
inline Error error_of(ClientError reason, const std::string& why) {
  switch (reason) {
    case ClientError::none: break;
    case ClientError::invalid_name: return {ErrorCode::invalid_request, why};
    case ClientError::unauthorized_access: return {ErrorCode::unauthorized_access, why};
    case ClientError::not_supported: return {ErrorCode::not_supported, why};
    case ClientError::limit_reached: return {ErrorCode::limit_reached, why};
    case ClientError::no_space: return {ErrorCode::no_space, why};
    case ClientError::io_error: return {ErrorCode::io_error, why};
    case ClientError::topic_deleted: return {ErrorCode::topic_not_found, "topic not found"};
    case ClientError::shutting_down: return {ErrorCode::shutting_down, "the broker is stopping"};
    case ClientError::fenced:
    case ClientError::unknown_producer:
    case ClientError::incarnation_changed: break;
  }
  return {ErrorCode::internal, why};
}

/// Returns the error for a request for messages while those of too many others are not sent yet.
inline Error too_many_copies() {
  return {ErrorCode::busy, "too many messages for other requests are not sent yet; try again"};
}

/// Returns the error for a client that lost its right while its request waited.
inline Error right_withdrawn() {
  return {ErrorCode::unauthorized_access, "the right to do this was withdrawn"};
}

}  // namespace lightq::broker
