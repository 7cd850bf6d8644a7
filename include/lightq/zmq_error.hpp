/// Translates errors of libzmq into errors of this library. Layer: client.
#pragma once

#include <cerrno>
#include <string>

#include <zmq.hpp>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// Returns the error for a failed call of libzmq, from a description of the call and its zmq_errno().
inline Error zmq_error(const std::string& what, int number) {
  if (number == EMFILE || number == ENFILE) {
    return {ErrorCode::limit_reached, what + ": this process has no more sockets or file descriptors",
            number};
  }
  if (number == ETERM || number == ENOTSOCK) return {ErrorCode::closed, what + ": the ZeroMQ context ended"};
  return {ErrorCode::io_error, what + ": " + zmq_strerror(number)};
}

}  // namespace lightq::inline v1
