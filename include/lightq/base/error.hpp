/// Errors: a stable code, a sentence, and the operating system's errno if there was one. Layer: base.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace lightq::inline v1 {

/// Stable error codes. Their wire words (see `to_word`) are part of the control protocol (docs/protocol.md,
/// "Errors") and never change; new ones are only added.
enum class ErrorCode {
  invalid_json,          ///< a control request that is not JSON, too deep, or not UTF-8
  invalid_cmd,           ///< no `cmd`, or one that does not exist
  invalid_request,       ///< a field is missing, of the wrong type, or out of its range
  request_too_large,     ///< a control request above the size limit
  unauthorized_access,   ///< credentials that do not permit this
  topic_not_found,       ///< no such topic (only reported to valid credentials)
  topic_already_exists,  ///< create_topic of a name that is taken
  endpoint_not_found,    ///< `leave` of a `bind_uri` that is not open
  group_not_found,       ///< delete_group, pause … of a group that does not exist
  group_in_use,          ///< delete_group of a group with connected consumers
  schedule_not_found,    ///< pause_schedule … of a schedule that does not exist
  user_not_found,        ///< no such user (only reported to administrators)
  user_already_exists,   ///< create_user, or a topic's own user, with a name that is taken
  not_supported,         ///< documented, but not in this version
  limit_reached,         ///< a limit of docs/protocol.md, "Limits": topics, endpoints, descriptors …
  busy,                  ///< too many requests wait already; try again
  shutting_down,         ///< the broker is stopping
  address_in_use,        ///< a port or path is taken
  io_error,              ///< the operating system refused; `system_error` is its errno
  no_space,              ///< the disk is full, or below the configured floor
  corrupt,               ///< stored bytes that fail their checks
  foreign_format,        ///< a file of another format or version
  in_use,                ///< another process holds the data directory
  too_large,             ///< a message above `message_bytes_max`, or one that can never fit its log
  timeout,               ///< a deadline passed
  closed,                ///< the object was closed, or the peer went away
  invalid_argument,      ///< a caller's argument is out of its documented range
  internal,              ///< a bug in LightQ
};

/// Returns the wire word of a code, for example `topic_not_found`.
constexpr std::string_view to_word(ErrorCode code) {
  constexpr std::array<std::string_view, 28> words = {"invalid_json",
                                                      "invalid_cmd",
                                                      "invalid_request",
                                                      "request_too_large",
                                                      "unauthorized_access",
                                                      "topic_not_found",
                                                      "topic_already_exists",
                                                      "endpoint_not_found",
                                                      "group_not_found",
                                                      "group_in_use",
                                                      "schedule_not_found",
                                                      "user_not_found",
                                                      "user_already_exists",
                                                      "not_supported",
                                                      "limit_reached",
                                                      "busy",
                                                      "shutting_down",
                                                      "address_in_use",
                                                      "io_error",
                                                      "no_space",
                                                      "corrupt",
                                                      "foreign_format",
                                                      "in_use",
                                                      "too_large",
                                                      "timeout",
                                                      "closed",
                                                      "invalid_argument",
                                                      "internal"};
  return words.at(static_cast<std::size_t>(code));
}

/// Returns the code of a wire word, or nothing for a word that this version does not know.
constexpr std::optional<ErrorCode> error_code_of(std::string_view word) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    if (to_word(static_cast<ErrorCode>(i)) == word) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

/// An error: a code for programs, and a sentence for people that names the object and the numbers.
/// `system_error` is the operating system's errno, or 0 if it did not cause the error. Immutable value; any
/// thread.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  int system_error = 0;

  /// Returns the sentence, followed by the operating system's description of `system_error` if that is not 0.
  [[nodiscard]] std::string text() const {
    if (system_error == 0) return message;
    return message + ": " + std::generic_category().message(system_error);
  }
};

}  // namespace lightq::inline v1
