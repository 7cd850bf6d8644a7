/// What a session's frames travel over. Layer: client.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include <lightq/base/result.hpp>
#include <lightq/protocol/session_memory.hpp>

namespace lightq::inline v1 {

/// One connection, which is closed with this object. No call waits. One thread.
class SessionWire {
 public:
  virtual ~SessionWire() = default;

  /// Whether the connection is there; false: not yet. Errors: io_error.
  virtual Result<bool> connected() = 0;
  /// Takes what has come, at most `to`; less than that: there is no more now. Errors: closed (the other side
  /// ended the connection), io_error, invalid_request (what came cannot be frames).
  virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
  /// Sends as much of `parts`, whole frames or the rest of what was sent before, as there is room for; 0:
  /// there is none now. Errors: closed (the other side is gone), io_error.
  virtual Result<std::size_t> write(std::span<iovec> parts) = 0;
  /// Sends what a write has taken and the system has not; false: there is no room for it now. Errors: closed,
  /// io_error.
  virtual Result<bool> flush() { return true; }
  /// A write should have no more than that behind its first frame.
  [[nodiscard]] virtual std::size_t write_bytes_target() const = 0;

  /// To be waited for. Remains this object's.
  [[nodiscard]] virtual int fd() const = 0;
  /// Whether the descriptor becomes writable when there is room; otherwise readable, for that too.
  [[nodiscard]] virtual bool tells_room_by_writable() const = 0;
  /// While `connected` says not yet: whether that changes when the descriptor is writable; otherwise when it
  /// is readable. Of a wire that tells room by writable.
  [[nodiscard]] virtual bool connects_by_writable() const { return true; }
  /// Whether something can be read (`events` has POLLIN) or written (POLLOUT) though the descriptor may not
  /// say so: to be asked before one waits for it.
  virtual bool pending(short events) = 0;

  /// Whether the other side has ended the connection, behind what it has sent. Not known of libzmq's sockets.
  [[nodiscard]] virtual bool has_hung_up() const { return has_hung_up(fd()); }

  /// Whether memory of the broker's can take the place of the connection.
  [[nodiscard]] virtual bool can_share() const { return false; }
  /// What `shared` has said, which was read last: all further bytes go through the memory that came with it.
  /// Errors: invalid_request (none came, or another), io_error.
  virtual Result<void> share(const session::SharedSizes& /*sizes*/) {
    return Error{ErrorCode::invalid_request, "the broker shares memory where that cannot be"};
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
