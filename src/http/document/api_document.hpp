/// The OpenAPI document of the resources under /api/v1/. Layer: http. docs/http.md.
#pragma once

#include <string>

namespace lightq::broker {

/// Returns the document (OpenAPI 3.1) as JSON. It names all paths, methods, parameters, statuses and members.
/// Those of commands are described by the code that reads requests and writes replies. Thread: any.
std::string api_document();

}  // namespace lightq::broker
