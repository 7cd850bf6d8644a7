/// The control protocol in JSON: parse_request, parse_reply and to_json. Layer: protocol. Only its
/// definitions include nlohmann/json, which is slow to compile. producer.hpp and consumer.hpp do not include
/// this header.
#pragma once

#include <lightq/protocol/json_functions.hpp>  // IWYU pragma: export

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/protocol/json_local_files.hpp>  // IWYU pragma: export
#include <lightq/impl/protocol/json_reply.hpp>        // IWYU pragma: export
#include <lightq/impl/protocol/json_request.hpp>      // IWYU pragma: export
#include <lightq/impl/protocol/json_schema.hpp>       // IWYU pragma: export
#endif
