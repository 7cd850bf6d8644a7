/// The OpenAPI document of the resources under /api/v1/. Layer: http. docs/http.md.
#pragma once

#include <string>

namespace lightq::broker {

/// Returns the document (OpenAPI 3.1) as JSON. It names all paths, methods, parameters and statuses. Contents
/// of commands are objects whose members docs/protocol.md describes. Thread: any.
std::string api_document();

}  // namespace lightq::broker
