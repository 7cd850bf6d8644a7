/// Layer: endpoint.
#include "broker/endpoint/output_buffer.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace lightq::broker {

namespace {
// Sent bytes in front of a rest are worth moving the rest for, if it is not longer than they are.
constexpr std::size_t compact_from = 32 * limits::KiB;
// What a peer that did not read has made it grow to is given back.
constexpr std::size_t kept_bytes_max = 512 * limits::KiB;
}  // namespace

std::byte* OutputBuffer::extend(std::size_t bytes) {
  if (head_ >= compact_from && head_ >= buffered()) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  const std::size_t at = bytes_.size();
  bytes_.resize(at + bytes);
  return bytes_.data() + at;
}

void OutputBuffer::append(ByteView bytes) {
  if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), extend(bytes.size()));
}

FlushOutcome OutputBuffer::flush_with(int descriptor, ByteView behind) {
  while (buffered() + behind.size() > 0) {
    // Neither is written to: the system's type has no const.
    std::array<iovec, 2> parts{
        {{bytes_.data() + head_, buffered()}, {const_cast<std::byte*>(behind.data()), behind.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const auto sent = sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return FlushOutcome::broken;
      append(behind);
      return FlushOutcome::blocked;
    }
    const auto taken = static_cast<std::size_t>(sent);
    const std::size_t of_buffered = std::min(taken, buffered());
    head_ += of_buffered;
    behind = behind.subspan(taken - of_buffered);
    sent_total_ += taken;
  }
  bytes_.clear();
  head_ = 0;
  if (bytes_.capacity() > kept_bytes_max) release_memory();
  return FlushOutcome::all_sent;
}

void OutputBuffer::release_memory() {
  if (buffered() == 0) bytes_ = std::vector<std::byte>();  // `= {}` would keep the memory
}

}  // namespace lightq::broker
