/// Checks that the process has enough descriptors for libzmq. Layer: client.
#pragma once

#include <cstddef>

#include <lightq/base/separate.hpp>

namespace zmq {
class context_t;
}

namespace lightq::inline v1 {

/// Throws zmq::error_t, with the system's error number, if the process cannot open `count` more descriptors.
LIGHTQ_INLINE void expect_descriptors(std::size_t count);

/// Checks for descriptors before a socket of `context` is created. The first socket of a context starts its
/// threads, and libzmq aborts the program if it finds no descriptor for them. Throws zmq::error_t if there
/// may be too few.
LIGHTQ_INLINE void expect_room_for_socket(zmq::context_t& context);

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/zmq_room.hpp>  // IWYU pragma: export
#endif
