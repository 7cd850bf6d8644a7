/// The definitions of <lightq/detail/zmq_room.hpp>. Layer: client.
#pragma once

#include <lightq/detail/zmq_room.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include <zmq.hpp>

namespace lightq::inline v1 {

LIGHTQ_INLINE void expect_descriptors(std::size_t count) {
  std::vector<int> held;
  held.reserve(count);
  int error = 0;
  while (held.size() < count && error == 0) {
    const int descriptor = ::eventfd(0, EFD_CLOEXEC);
    error = descriptor < 0 ? errno : 0;
    if (error == 0) held.push_back(descriptor);
  }
  std::ranges::for_each(held, ::close);
  if (error != 0) throw zmq::error_t(error);
}

LIGHTQ_INLINE void expect_room_for_socket(zmq::context_t& context) {
  constexpr std::size_t of_a_thread = 2;
  constexpr std::size_t of_the_rest = 12;  // its own thread, the socket, its monitor, a connection; some
                                           // spare
  const int threads = zmq_ctx_get(context.handle(), ZMQ_IO_THREADS);
  expect_descriptors(of_the_rest + of_a_thread * static_cast<std::size_t>(std::max(threads, 1)));
}

}  // namespace lightq::inline v1
