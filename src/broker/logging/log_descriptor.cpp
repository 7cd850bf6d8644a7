/// Writes to a descriptor in pieces that do not block, and waits for space between them. Layer: logging.
#include "broker/logging/log_descriptor.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

namespace lightq::broker {

bool LogDescriptor::wait_for_room(const std::atomic<bool>& give_up) const {
  constexpr int look_again_ms = 50;
  while (!give_up) {
    pollfd room{descriptor_, POLLOUT, 0};
    const int ready = poll(&room, 1, look_again_ms);
    if (ready > 0) return true;  // an error, too: write() reports it
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

bool LogDescriptor::write(std::string_view bytes, const std::atomic<bool>& give_up) const {
  while (!bytes.empty()) {
    if (!wait_for_room(give_up)) return false;
    // A pipe with space accepts this many bytes without blocking.
    const auto count = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno != EINTR && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

}  // namespace lightq::broker
