/// How a client reacts to each code of a session. docs/session.md, "Codes". Layer: client.
#pragma once

#include <string>

#include <lightq/base/error.hpp>
#include <lightq/protocol/session_link.hpp>

namespace lightq::inline v1 {

/// The client's reaction to the end of a connection or attempt.
enum class Consequence {
  again,  ///< connects again
  join,   ///< joins again, then connects again
  doubt,  ///< the broker does not know the producer: see SessionState::in_doubt
  fail,   ///< gives up
};

/// A producer's reaction to a refused batch.
enum class Refusal {
  again_at_once,  ///< sends it again immediately
  again_later,
  give_up,  ///< gives up its messages and continues
  end,      ///< the channel cannot be used any more
};

/// Returns the library's error code for a session's code.
constexpr ErrorCode error_code_of(session::Code code) {
  using session::Code;
  switch (code) {
    case Code::unsupported_version:
    case Code::not_supported: return ErrorCode::not_supported;
    case Code::unauthorized_access: return ErrorCode::unauthorized_access;
    case Code::topic_not_found:
    case Code::topic_deleted: return ErrorCode::topic_not_found;
    case Code::incarnation_changed: return ErrorCode::invalid_argument;  // the offset to begin with
    case Code::limit_reached: return ErrorCode::limit_reached;
    case Code::too_large: return ErrorCode::too_large;
    case Code::corrupt: return ErrorCode::corrupt;
    case Code::fenced: return ErrorCode::in_use;
    case Code::no_space: return ErrorCode::no_space;
    case Code::io_error: return ErrorCode::io_error;
    case Code::shutting_down: return ErrorCode::shutting_down;
    case Code::idle: return ErrorCode::timeout;
    case Code::ok:
    case Code::unknown_channel:
    case Code::unknown_producer: return ErrorCode::closed;
    default: return ErrorCode::internal;
  }
}

/// Returns the error for a code and sentence from the broker.
inline Error error_of(session::Code code, const std::string& sentence) {
  std::string text = "the broker says " + std::string(to_word(code));
  if (!sentence.empty()) text += ": " + sentence;
  return {error_code_of(code), text};
}

/// Returns the reaction to `error` or `goodbye` with this code.
constexpr Consequence consequence_of(session::Code code) {
  using session::Code;
  switch (code) {
    case Code::unauthorized_access: return Consequence::join;
    case Code::unknown_producer: return Consequence::doubt;
    case Code::unsupported_version:
    case Code::not_supported:
    case Code::topic_not_found:
    case Code::topic_deleted:
    case Code::too_large:  // for a consumer: the same message would be too long again
    case Code::fenced: return Consequence::fail;
    default: return Consequence::again;
  }
}

/// Returns the reaction to `refuse` with this code. With `retry`, batches that may succeed later are sent
/// again.
constexpr Refusal refusal_of(session::Code code, bool retry) {
  using session::Code;
  switch (code) {
    case Code::corrupt:
    case Code::out_of_sequence: return Refusal::again_at_once;
    case Code::too_large: return Refusal::give_up;
    case Code::unauthorized_access:
    case Code::unknown_producer:
    case Code::unsupported_version:
    case Code::not_supported:
    case Code::topic_not_found:
    case Code::topic_deleted:
    case Code::fenced: return Refusal::end;
    default: return retry ? Refusal::again_later : Refusal::give_up;
  }
}

/// Returns true if a join that failed with this code would fail again.
constexpr bool is_final(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_json:
    case ErrorCode::invalid_cmd:
    case ErrorCode::invalid_request:
    case ErrorCode::request_too_large:
    case ErrorCode::unauthorized_access:
    case ErrorCode::topic_not_found:
    case ErrorCode::not_supported:
    case ErrorCode::invalid_argument: return true;
    default: return false;
  }
}

}  // namespace lightq::inline v1
