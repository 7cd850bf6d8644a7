/// How the two sides of memory that they share wake each other. docs/session.md, "Shared memory". Layer:
/// endpoint.
#pragma once

#include <cstdint>

#include <lightq/base/result.hpp>
#include <lightq/base/socket_wake.hpp>

#include "broker/endpoint/socket.hpp"

namespace lightq::broker {

/// Wakes over the session's socket, or, for a client that asks for descriptors, by two of them. Owns these.
/// Move-only. No call waits, whatever the client does to what it shares.
class SharedWake {
 public:
  /// `socket`: of the session; outlives this.
  static SharedWake over(int socket) {
    SharedWake made;
    made.socket_ = socket;
    return made;
  }
  /// Errors: limit_reached (descriptors), io_error.
  static Result<SharedWake> by_descriptors();

  void wake_client() const;
  /// Becomes readable when the client wakes the broker. An eventfd that the client alone writes to, and that
  /// is watched and never read. -1: the socket does that.
  [[nodiscard]] int of_broker() const { return of_broker_.get(); }
  /// A timerfd. -1: the socket wakes the client.
  [[nodiscard]] int of_client() const { return of_client_.get(); }
  [[nodiscard]] bool by_socket() const { return socket_ >= 0; }

 private:
  int socket_ = -1;
  UniqueFd of_broker_;
  UniqueFd of_client_;
};

}  // namespace lightq::broker
