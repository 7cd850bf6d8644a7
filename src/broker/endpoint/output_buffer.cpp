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
  if (sealed_ != nullptr) {
    if (sealed_->seals_any_bytes()) return flush_sealed(descriptor, behind);
    append(behind);
    return flush_sealed(descriptor, {});
  }
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
  emptied();
  return FlushOutcome::all_sent;
}

FlushOutcome OutputBuffer::flush_sealed(int descriptor, ByteView behind) {
  while (true) {
    const ByteView plain = ByteView(bytes_).subspan(head_);
    head_ += sealed_->seal(plain);
    if (head_ == bytes_.size()) {
      emptied();
      behind = behind.subspan(sealed_->seal(behind));
    }
    const ByteView wire = sealed_->waiting();
    if (wire.empty()) {
      append(behind);  // nothing can be sealed yet
      return FlushOutcome::all_sent;
    }
    const auto sent = send(descriptor, wire.data(), wire.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      sent_total_ += sealed_->sent(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      append(behind);
      return FlushOutcome::blocked;
    } else if (errno != EINTR) {
      return FlushOutcome::broken;
    }
  }
}

/// All of `bytes_` has left, or is sealed.
void OutputBuffer::emptied() {
  bytes_.clear();
  head_ = 0;
  if (bytes_.capacity() > kept_bytes_max) bytes_ = std::vector<std::byte>();  // `= {}` would keep the memory
}

void OutputBuffer::seal_with(WireCipher& cipher) {
  sealed_ = std::make_unique<SealedOutput>(cipher);
  sealed_->append_unsealed(ByteView(bytes_).subspan(head_));
  emptied();
}

void OutputBuffer::release_memory() {
  if (buffered() > 0) return;
  bytes_ = std::vector<std::byte>();
  if (sealed_ != nullptr) sealed_->release_memory();
}

}  // namespace lightq::broker
