/// Layer: endpoint.
#include "broker/endpoint/output_buffer.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace lightq::broker {

namespace {
constexpr std::size_t compact_from =
    32 * 1024;  // sent bytes in front of a rest are worth moving the rest for
}

std::byte* OutputBuffer::extend(std::size_t bytes) {
  if (head_ >= compact_from) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  const std::size_t at = bytes_.size();
  bytes_.resize(at + bytes);
  return bytes_.data() + at;
}

FlushOutcome OutputBuffer::flush(int descriptor) {
  while (head_ < bytes_.size()) {
    const auto sent =
        send(descriptor, bytes_.data() + head_, bytes_.size() - head_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? FlushOutcome::blocked : FlushOutcome::broken;
    }
    head_ += static_cast<std::size_t>(sent);
    sent_total_ += static_cast<std::uint64_t>(sent);
  }
  bytes_.clear();
  head_ = 0;
  return FlushOutcome::all_sent;
}

void OutputBuffer::release_memory() {
  if (buffered() == 0) bytes_ = {};
}

}  // namespace lightq::broker
