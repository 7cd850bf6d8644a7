/// The control protocol in JSON: parse_request, parse_reply and to_json. Layer: protocol. This is the only
/// public header that includes nlohmann/json. Because that library is slow to compile, producer.hpp and
/// consumer.hpp do not include this header, and a program may compile it once (json_functions.hpp).
#pragma once

#include <lightq/protocol/json_functions.hpp>  // IWYU pragma: export

#if !defined(LIGHTQ_COMPILED_JSON) || defined(LIGHTQ_JSON_DEFINITIONS)
#include <lightq/protocol/json_local_files.hpp>  // IWYU pragma: export
#include <lightq/protocol/json_reply.hpp>        // IWYU pragma: export
#include <lightq/protocol/json_request.hpp>      // IWYU pragma: export
#endif
