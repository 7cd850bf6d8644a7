/// Wakes between a broker and a client that share memory. docs/session.md, "Shared memory". Layer: net.
#pragma once

#include <lightq/base/result.hpp>

#include "net/socket.hpp"

namespace lightq::broker {

/// Wakes the client over the session's socket. For a client that asks for descriptors, two descriptors are
/// used instead, which this object owns. Move-only. No call waits, even if the client misuses the descriptors
/// that it shares.
class SharedWake {
 public:
  /// Wakes over the session's socket. Lifetime: the socket outlives this object.
  static SharedWake over(int socket) {
    SharedWake made;
    made.socket_ = socket;
    return made;
  }
  /// Wakes by two new descriptors. Errors: limit_reached (descriptors), io_error.
  static Result<SharedWake> by_descriptors();

  void wake_client() const;
  /// Returns the descriptor that becomes readable when the client wakes the broker, or -1 if the socket does.
  /// It is an eventfd that only the client writes to; the broker watches it and never reads it.
  [[nodiscard]] int of_broker() const { return of_broker_.get(); }
  /// Returns the timerfd by which the broker wakes the client, or -1 if the socket does that.
  [[nodiscard]] int of_client() const { return of_client_.get(); }
  [[nodiscard]] bool by_socket() const { return socket_ >= 0; }

 private:
  int socket_ = -1;
  UniqueFd of_broker_;
  UniqueFd of_client_;
};

}  // namespace lightq::broker
