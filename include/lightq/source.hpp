/// Defines what the client's headers declare, for programs with LIGHTQ_SEPARATE_COMPILATION: one source file
/// of the program includes this header, before any other header of the library (see base/separate.hpp).
/// Without that macro it includes the library like any other header. Layer: client.
#pragma once

#if defined(LIGHTQ_SEPARATE_COMPILATION) && defined(LIGHTQ_WITHOUT_DEFINITIONS)
#error "include <lightq/source.hpp> before all other headers of LightQ"
#endif
#define LIGHTQ_SOURCE

#include <lightq/base/private_file.hpp>
#include <lightq/client_key_file.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/discovery.hpp>
#include <lightq/exposure.hpp>
#include <lightq/lightq.hpp>
#include <lightq/protocol/json.hpp>
#include <lightq/running_broker.hpp>
