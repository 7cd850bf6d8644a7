/// Owners and errors for system calls. Layer: bench support.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::bench {

using Clock = std::chrono::steady_clock;  ///< CLOCK_MONOTONIC: comparable between processes

/// Returns an error about `what`, with the calling thread's `errno`.
inline Error system_error(std::string what) {
  return Error{ErrorCode::io_error, std::move(what), errno};
}

/// Returns an error of a measurement: lost, reordered or damaged messages, or a process that failed.
inline Error failure(std::string what) {
  return Error{ErrorCode::internal, std::move(what), 0};
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

/// Returns the milliseconds until `deadline` for poll(): never negative, rounded up.
inline int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

/// Owns a descriptor. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace lightq::bench
