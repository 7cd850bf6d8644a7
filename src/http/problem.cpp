/// Errors as responses over HTTP. Layer: http.
#include "http/problem.hpp"

#include <utility>

#include <lightq/protocol/json_fields.hpp>

namespace lightq::broker {

namespace {

unsigned status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_json:
    case ErrorCode::invalid_request:
    case ErrorCode::invalid_argument: return 400;
    case ErrorCode::invalid_cmd:
    case ErrorCode::topic_not_found:
    case ErrorCode::endpoint_not_found:
    case ErrorCode::group_not_found:
    case ErrorCode::schedule_not_found:
    case ErrorCode::user_not_found: return 404;
    case ErrorCode::request_too_large:
    case ErrorCode::too_large: return 413;
    case ErrorCode::unauthorized_access: return 403;
    case ErrorCode::topic_already_exists:
    case ErrorCode::user_already_exists:
    case ErrorCode::group_in_use:
    case ErrorCode::in_use:
    case ErrorCode::address_in_use: return 409;
    case ErrorCode::busy:
    case ErrorCode::limit_reached: return 429;
    case ErrorCode::not_supported: return 422;
    case ErrorCode::shutting_down:
    case ErrorCode::closed: return 503;
    case ErrorCode::timeout: return 504;
    case ErrorCode::no_space: return 507;
    case ErrorCode::io_error:
    case ErrorCode::corrupt:
    case ErrorCode::foreign_format:
    case ErrorCode::internal: break;
  }
  return 500;
}

}  // namespace

std::string_view reason_of(unsigned status) {
  constexpr std::pair<unsigned, std::string_view> reasons[] = {
      {200, "OK"},
      {201, "Created"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
  };
  for (const auto& [each, words] : reasons) {
    if (each == status) return words;
  }
  return "Unknown";
}

HttpResponse problem(unsigned status, ErrorCode code, std::string_view detail) {
  const protocol::detail::OrderedJson document{
      {"title", reason_of(status)}, {"status", status}, {"code", to_word(code)}, {"detail", detail}};
  HttpResponse response{.status = status,
                        .content_type = "application/problem+json",
                        .body = protocol::detail::dump(document) + "\n"};
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse problem(const Error& error) {
  return problem(status_of(error.code), error.code, error.text());
}

HttpResponse refused_command(const Error& error) {
  // With correct credentials the error names the right that is missing.
  const bool knows_nobody =
      error.code == ErrorCode::unauthorized_access && error.message == to_word(error.code);
  return knows_nobody ? login_wanted("the user or the password is missing or wrong") : problem(error);
}

HttpResponse login_wanted(std::string_view detail) {
  HttpResponse response = problem(401, ErrorCode::unauthorized_access, detail);
  response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"LightQ\", charset=\"UTF-8\"");
  return response;
}

}  // namespace lightq::broker
