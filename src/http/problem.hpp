/// Errors as responses over HTTP. Layer: http. docs/http.md, "Errors".
#pragma once

#include <string>
#include <string_view>

#include <lightq/base/error.hpp>

#include "http/http_response.hpp"

namespace lightq::broker {

/// Returns a response with problem details (RFC 9457). Its member `code` has the word of the control
/// protocol's error.
HttpResponse problem(unsigned status, ErrorCode code, std::string_view detail);
/// Returns the response to an error of an operation, with the status that fits its code.
HttpResponse problem(const Error& error);
/// Returns the response to a request without correct credentials. It asks for HTTP Basic.
HttpResponse login_wanted(std::string_view detail);
/// Returns the response to a command that was refused: as `problem`, and 401 if its credentials were missing
/// or wrong.
HttpResponse refused_command(const Error& error);
/// Returns the words that HTTP has for a status, for example `Not Found`.
std::string_view reason_of(unsigned status);

}  // namespace lightq::broker
