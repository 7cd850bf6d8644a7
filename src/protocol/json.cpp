/// The control protocol's JSON, compiled once for all of the project's programs. Layer: protocol.
#define LIGHTQ_JSON_DEFINITIONS
#include <lightq/protocol/json.hpp>
