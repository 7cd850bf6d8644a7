/// The definitions of <lightq/detail/zmq_socket.hpp>. Layer: client.
#pragma once

#include <lightq/detail/zmq_socket.hpp>

#include <memory>
#include <new>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/home_process.hpp>
#include <lightq/detail/zmq_room.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE std::shared_ptr<zmq::context_t> make_zmq_context() {
  return {new zmq::context_t, [home = HomeProcess()](zmq::context_t* context) {
            if (home.is_here()) delete context;
          }};
}

}  // namespace lightq::inline v1
