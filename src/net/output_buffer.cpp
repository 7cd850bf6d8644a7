/// Buffers output and sends it in clear, encrypted or through shared memory. Layer: net.
#include "net/output_buffer.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {
// Once this many bytes at the front were sent, and no more are unsent, the unsent bytes move to the front.
constexpr std::size_t compact_from = 32 * limits::KiB;
// A buffer that a slow peer has made larger than this is freed when the buffer is empty.
constexpr std::size_t kept_bytes_max = 512 * limits::KiB;
}  // namespace

std::byte* OutputBuffer::extend(std::size_t bytes) {
  if (head_ >= compact_from && head_ >= buffered()) {
    const std::size_t left = bytes_.size() - head_;
    std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(head_), bytes_.end(), bytes_.begin());
    bytes_.resize(left);
    head_ = 0;
  }
  const std::size_t at = bytes_.size();
  if (bytes_.capacity() - at < bytes) {
    const FallibleAllocations fallible;
    bytes_.reserve(std::max(at + bytes, 2 * bytes_.capacity()));
  }
  bytes_.resize(at + bytes);
  return bytes_.data() + at;
}

void OutputBuffer::append(ByteView bytes) {
  if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), extend(bytes.size()));
}

FlushOutcome OutputBuffer::flush_with(int descriptor, ByteView behind) {
  if (shared_ != nullptr) return flush_shared(behind);
  if (sealed_ != nullptr) {
    if (sealed_->seals_any_bytes()) return flush_sealed(descriptor, behind);
    append(behind);
    return flush_sealed(descriptor, {});
  }
  while (buffered() + behind.size() > 0) {
    // sendmsg only reads both parts. The cast is needed because iovec has no const pointer.
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
    behind = passed_on(static_cast<std::size_t>(sent), behind);
  }
  emptied();
  return FlushOutcome::all_sent;
}

FlushOutcome OutputBuffer::flush_shared(ByteView behind) {
  while (buffered() + behind.size() > 0) {
    if (shared_->ended()) {  // the output is dropped, but the connection stays: its input may be unread
      behind = passed_on(buffered() + behind.size(), behind);
      break;
    }
    behind = passed_on(shared_->send(ByteView(bytes_).subspan(head_), behind), behind);
    if (shared_->broken()) return FlushOutcome::broken;
    if (buffered() + behind.size() == 0 || !shared_->wait_for_room()) continue;
    append(behind);
    return FlushOutcome::blocked;
  }
  emptied();
  return FlushOutcome::all_sent;
}

/// Removes `bytes` sent bytes: from the buffer, then from `behind`. Returns the rest of `behind`.
ByteView OutputBuffer::passed_on(std::size_t bytes, ByteView behind) {
  const std::size_t of_buffered = std::min(bytes, buffered());
  head_ += of_buffered;
  sent_total_ += bytes;
  return behind.subspan(bytes - of_buffered);
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
      append(behind);  // nothing can be encrypted yet
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

/// Clears the buffer after all its bytes were sent or encrypted.
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
