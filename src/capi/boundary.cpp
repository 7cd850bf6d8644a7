/// Defines the codes, and the error of each thread. Layer: capi.
#include "capi/boundary.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include <lightq/version.hpp>

namespace lightq::capi {

namespace {

struct OwnCode {
  int code;
  const char* word;
};
constexpr OwnCode own_codes[] = {{LIGHTQ_OK, "ok"},
                                 {LIGHTQ_NO_MEMORY, "no_memory"},
                                 {LIGHTQ_REVOKED, "revoked"},
                                 {LIGHTQ_CALLBACK, "callback"}};

/// The error of this thread. It has no destructor and allocates nothing.
thread_local lightq_error last_error{};

/// Returns how many bytes of `text` fit. Does not cut a character of UTF-8 in two.
std::size_t fitting(std::string_view text) {
  std::size_t bytes = std::min(text.size(), sizeof last_error.text - 1);
  if (bytes == text.size()) return bytes;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80) --bytes;
  return bytes;
}

}  // namespace

int code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_json: return LIGHTQ_INVALID_JSON;
    case ErrorCode::invalid_cmd: return LIGHTQ_INVALID_CMD;
    case ErrorCode::invalid_request: return LIGHTQ_INVALID_REQUEST;
    case ErrorCode::request_too_large: return LIGHTQ_REQUEST_TOO_LARGE;
    case ErrorCode::unauthorized_access: return LIGHTQ_UNAUTHORIZED_ACCESS;
    case ErrorCode::topic_not_found: return LIGHTQ_TOPIC_NOT_FOUND;
    case ErrorCode::topic_already_exists: return LIGHTQ_TOPIC_ALREADY_EXISTS;
    case ErrorCode::endpoint_not_found: return LIGHTQ_ENDPOINT_NOT_FOUND;
    case ErrorCode::group_not_found: return LIGHTQ_GROUP_NOT_FOUND;
    case ErrorCode::group_in_use: return LIGHTQ_GROUP_IN_USE;
    case ErrorCode::schedule_not_found: return LIGHTQ_SCHEDULE_NOT_FOUND;
    case ErrorCode::user_not_found: return LIGHTQ_USER_NOT_FOUND;
    case ErrorCode::user_already_exists: return LIGHTQ_USER_ALREADY_EXISTS;
    case ErrorCode::not_supported: return LIGHTQ_NOT_SUPPORTED;
    case ErrorCode::limit_reached: return LIGHTQ_LIMIT_REACHED;
    case ErrorCode::busy: return LIGHTQ_BUSY;
    case ErrorCode::shutting_down: return LIGHTQ_SHUTTING_DOWN;
    case ErrorCode::address_in_use: return LIGHTQ_ADDRESS_IN_USE;
    case ErrorCode::io_error: return LIGHTQ_IO_ERROR;
    case ErrorCode::no_space: return LIGHTQ_NO_SPACE;
    case ErrorCode::corrupt: return LIGHTQ_CORRUPT;
    case ErrorCode::foreign_format: return LIGHTQ_FOREIGN_FORMAT;
    case ErrorCode::in_use: return LIGHTQ_IN_USE;
    case ErrorCode::too_large: return LIGHTQ_TOO_LARGE;
    case ErrorCode::timeout: return LIGHTQ_TIMEOUT;
    case ErrorCode::closed: return LIGHTQ_CLOSED;
    case ErrorCode::invalid_argument: return LIGHTQ_INVALID_ARGUMENT;
    case ErrorCode::internal: break;
  }
  return LIGHTQ_INTERNAL;
}

int fail(int code, std::string_view text, int system_error) noexcept {
  last_error.code = code;
  last_error.system_error = system_error;
  last_error.retryable = lightq_retryable(code);
  const std::size_t bytes = fitting(text);
  std::memcpy(last_error.text, text.data(), bytes);
  last_error.text[bytes] = '\0';
  return code;
}

int fail(const Error& error) noexcept {
  const int code = code_of(error.code);
  try {
    return fail(code, error.text(), error.system_error);
  } catch (...) {  // no memory for the whole text
    return fail(code, error.message, error.system_error);
  }
}

int fail_argument(std::string_view text) noexcept {
  return fail(LIGHTQ_INVALID_ARGUMENT, text);
}

int fail_by_exception() noexcept {
  try {
    throw;
  } catch (const CallbackThrew&) {
    return fail(LIGHTQ_CALLBACK, "a callback of the program threw an exception");
  } catch (const std::bad_alloc&) {
    return fail(LIGHTQ_NO_MEMORY, "this process has no memory left");
  } catch (const Exception& exception) {
    return fail(exception.error());
  } catch (const std::exception& exception) {
    return fail(LIGHTQ_INTERNAL, exception.what());
  } catch (...) {
    return fail(LIGHTQ_INTERNAL, "an unknown exception");
  }
}

int fail_null_handle() noexcept {
  return fail_argument("the handle is null");
}

int fail_forked() noexcept {
  return fail(LIGHTQ_CLOSED,
              "the handle was opened before this process was forked: the child must open its own");
}

int fail_in_use() noexcept {
  return fail(
      LIGHTQ_IN_USE,
      "this handle is in another call: a producer, consumer or reader is for one thread at a time, and "
      "not for its own callbacks");
}

}  // namespace lightq::capi

using lightq::ErrorCode;

extern "C" {

const lightq_error* lightq_last_error(void) {
  return &lightq::capi::last_error;
}

const char* lightq_strerror(int code) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto known = static_cast<ErrorCode>(i);
    if (lightq::capi::code_of(known) == code) return lightq::to_word(known).data();
  }
  for (const auto& own : lightq::capi::own_codes) {
    if (own.code == code) return own.word;
  }
  return "unknown";
}

int lightq_retryable(int code) {
  switch (code) {
    case LIGHTQ_LIMIT_REACHED:
    case LIGHTQ_BUSY:
    case LIGHTQ_SHUTTING_DOWN:
    case LIGHTQ_IO_ERROR:
    case LIGHTQ_NO_SPACE:
    case LIGHTQ_TIMEOUT:
    case LIGHTQ_NO_MEMORY: return 1;
    default: return 0;
  }
}

const char* lightq_version(void) {
  return lightq::version_text.data();
}
}
