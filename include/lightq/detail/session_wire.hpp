/// The interface of a session's carrier. Layer: client.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include <lightq/base/result.hpp>
#include <lightq/protocol/session_memory.hpp>

namespace lightq::inline v1 {

/// One connection, which the destructor closes. No call waits. For one thread.
class SessionWire {
 public:
  virtual ~SessionWire() = default;

  /// Returns true once the connection is established. Errors: io_error.
  virtual Result<bool> connected() = 0;
  /// Reads received bytes into `to`. Fewer bytes than fit mean that there are no more now. Errors: closed
  /// (the other side ended the connection), io_error, invalid_request (the bytes cannot be frames).
  virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
  /// Sends as many bytes of `parts` as the carrier accepts, and returns how many; 0: none now. `parts` are
  /// whole frames, or begin with the rest of the last one. Errors: closed (the other side is gone), io_error.
  virtual Result<std::size_t> write(std::span<iovec> parts) = 0;
  /// Sends bytes that a write has accepted and the system has not. Returns false if some remain. Errors:
  /// closed, io_error.
  virtual Result<bool> flush() { return true; }
  /// Returns how many bytes a write should have behind its first frame at most.
  [[nodiscard]] virtual std::size_t write_bytes_target() const = 0;

  /// Returns the descriptor to wait for. Lifetime: it remains this object's.
  [[nodiscard]] virtual int fd() const = 0;
  /// Returns true if the descriptor becomes writable when more can be sent; false if it becomes readable for
  /// that, too.
  [[nodiscard]] virtual bool tells_room_by_writable() const = 0;
  /// Returns true if an unfinished connection needs the descriptor to be writable, false if readable.
  /// Requires: tells_room_by_writable().
  [[nodiscard]] virtual bool connects_by_writable() const { return true; }
  /// Returns true if bytes can be read (`events` has POLLIN) or written (POLLOUT), although the descriptor
  /// may not show it. Call it before waiting for the descriptor.
  virtual bool pending(short events) = 0;

  /// Returns true if the other side has ended the connection after its last bytes. Unknown for libzmq
  /// sockets.
  [[nodiscard]] virtual bool has_hung_up() const { return has_hung_up(fd()); }

  /// Returns true if memory of the broker can replace the connection as carrier.
  [[nodiscard]] virtual bool can_share() const { return false; }
  /// Continues in shared memory. Requires: the frame `shared` was read last; `sizes` are its sizes, and the
  /// memory arrived with it. Errors: invalid_request (no memory arrived, or memory of another size),
  /// io_error.
  virtual Result<void> share(const session::SharedSizes& /*sizes*/) {
    return Error{ErrorCode::invalid_request,
                 "the broker shares memory over a connection that does not support it"};
  }

 protected:
  static bool has_hung_up(int connection) {
    pollfd entry{connection, POLLRDHUP, 0};
    return connection >= 0 && ::poll(&entry, 1, 0) > 0;
  }
  SessionWire() = default;
  SessionWire(const SessionWire&) = default;
  SessionWire& operator=(const SessionWire&) = default;
};

}  // namespace lightq::inline v1
