/// The control protocol in JSON: parse_request, parse_reply and to_json. Layer: protocol.
/// The one public home of nlohmann/json; what it costs to compile is why producer.hpp and consumer.hpp stay
/// away from it.
#pragma once

#include <lightq/protocol/json_reply.hpp>    // IWYU pragma: export
#include <lightq/protocol/json_request.hpp>  // IWYU pragma: export
