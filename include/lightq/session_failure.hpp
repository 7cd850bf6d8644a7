/// What follows from a code of a session's. docs/session.md, "Codes". Layer: client.
#pragma once

#include <string>

#include <lightq/base/error.hpp>
#include <lightq/protocol/session_link.hpp>

namespace lightq::inline v1 {

/// What a client does about the end of a connection, or of an attempt.
enum class Consequence {
  again,  ///< connects again
  join,   ///< joins again before that
  doubt,  ///< the broker does not know the producer: see SessionState::in_doubt
  fail,   ///< gives up
};

/// What a producer does about a refused batch.
enum class Refusal {
  again_at_once,  ///< sends it again
  again_later,
  give_up,  ///< goes on without its messages
  end,      ///< the channel is of no use any more
};

/// The library's code for one of a session's.
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

/// The error for a code that the broker has sent with a sentence.
inline Error error_of(session::Code code, const std::string& sentence) {
  std::string text = "the broker says " + std::string(to_word(code));
  if (!sentence.empty()) text += ": " + sentence;
  return {error_code_of(code), text};
}

/// Of `error` or `goodbye` with this code.
constexpr Consequence consequence_of(session::Code code) {
  using session::Code;
  switch (code) {
    case Code::unauthorized_access: return Consequence::join;
    case Code::unknown_producer: return Consequence::doubt;
    case Code::unsupported_version:
    case Code::not_supported:
    case Code::topic_not_found:
    case Code::topic_deleted:
    case Code::too_large:  // of a consumer: what is too long comes again each time
    case Code::fenced: return Consequence::fail;
    default: return Consequence::again;
  }
}

/// Of `refuse` with this code; `retry`: what may go better later is to be sent again.
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

/// Whether a join that failed so would fail again.
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
