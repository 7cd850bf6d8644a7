/// A ZeroMQ socket that a forked child leaves alone. Layer: client.
#pragma once

#include <memory>
#include <new>
#include <utility>

#include <zmq.hpp>

#include <lightq/base/home_process.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/zmq_room.hpp>

namespace lightq::inline v1 {

/// A zmq::socket_t that is not closed in a forked child. libzmq's threads belong to the parent;
/// closing the socket in the child would wake them and wait forever. Movable like a zmq::socket_t. For one
/// thread.
class ZmqSocket final : public zmq::socket_t {
 public:
  ZmqSocket() = default;
  // Implicit, because it is the same socket: NOLINTNEXTLINE(google-explicit-constructor)
  ZmqSocket(zmq::socket_t&& made) noexcept : zmq::socket_t(std::move(made)) {}
  /// Throws zmq::error_t, also if the process has few descriptors left.
  ZmqSocket(zmq::context_t& context, zmq::socket_type type) : zmq::socket_t(checked(context), type) {}
  ZmqSocket(ZmqSocket&& other) noexcept = default;
  ZmqSocket& operator=(ZmqSocket&& other) noexcept {
    leave_if_forked();
    zmq::socket_t::operator=(std::move(other));
    home_ = other.home_;
    return *this;
  }
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;
  ~ZmqSocket() { leave_if_forked(); }

  /// Returns false in a child that was forked later, where the socket must not be used.
  [[nodiscard]] bool is_here() const { return home_.is_here(); }

 private:
  static zmq::context_t& checked(zmq::context_t& context) {
    expect_room_for_socket(context);
    return context;
  }
  void leave_if_forked() noexcept {
    if (home_.is_here() || handle() == nullptr) return;
    // This copy of the handle is never destroyed.
    alignas(zmq::socket_t) static thread_local unsigned char left[sizeof(zmq::socket_t)];
    new (left) zmq::socket_t(std::move(*this));
  }

  HomeProcess home_;
};

/// Creates a context for a client. In a forked child it is never destroyed, because its threads belong to the
/// parent. Throws zmq::error_t.
LIGHTQ_INLINE std::shared_ptr<zmq::context_t> make_zmq_context();

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/zmq_socket.hpp>  // IWYU pragma: export
#endif
