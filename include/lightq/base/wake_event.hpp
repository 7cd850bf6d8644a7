/// Waking another process that waits for a descriptor. Layer: base.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include <lightq/base/result.hpp>

namespace lightq::inline v1 {

/// Owns an eventfd(2), whose count nobody reads: who waits watches it edge-triggered (EPOLLET). Not a socket,
/// because a message over one tells the scheduler that its sender is about to sleep, so that who is woken is
/// put behind it, on a processor that is busy, though another one may be idle. Move-only. Any thread.
class WakeEvent {
 public:
  WakeEvent() = default;
  WakeEvent(WakeEvent&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  WakeEvent& operator=(WakeEvent&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~WakeEvent() { close(); }

  /// Errors: limit_reached (descriptors), io_error.
  static Result<WakeEvent> make() {
    WakeEvent made;
    made.descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made.descriptor_ >= 0) return made;
    const bool full = errno == EMFILE || errno == ENFILE;
    return Error{full ? ErrorCode::limit_reached : ErrorCode::io_error, "cannot make an eventfd", errno};
  }
  /// Takes over what somebody else has made, who may be no friend: from now on no write to it waits.
  static WakeEvent adopt(int descriptor) {
    WakeEvent made;
    made.descriptor_ = descriptor;
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) == 0) (void)::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
    return made;
  }

  /// Wakes whoever waits. Where the count is at its end, which is a lifetime of wakes or somebody's malice,
  /// it does nothing.
  void wake() const {
    const std::uint64_t one = 1;
    while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  int descriptor_ = -1;
};

/// Of a session in shared memory: a side wakes the other one by what is the other's.
struct WakeEvents {
  WakeEvent broker;
  WakeEvent client;
};

}  // namespace lightq::inline v1
