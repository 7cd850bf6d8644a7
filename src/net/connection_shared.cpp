/// A connection's input and output through memory that it shares with its peer. Layer: net.
#include <sys/socket.h>

#include <cassert>
#include <cstddef>
#include <cstring>
#include <utility>

#include "net/connection.hpp"

namespace lightq::broker {

bool Connection::is_local() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         address.ss_family == AF_UNIX;
}

bool Connection::send_descriptors(ByteView bytes, std::span<const int> descriptors) {
  constexpr std::size_t descriptors_max = 3;
  assert(descriptors.size() <= descriptors_max);
  alignas(cmsghdr) std::byte control[CMSG_SPACE(descriptors_max * sizeof(int))]{};
  // The cast is safe: sendmsg does not write to the bytes, but iovec has no const.
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const about = CMSG_FIRSTHDR(&message);
  about->cmsg_level = SOL_SOCKET;
  about->cmsg_type = SCM_RIGHTS;
  about->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(about), descriptors.data(), descriptors.size_bytes());
  const auto sent = sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0 && sent < static_cast<ssize_t>(bytes.size())) fail("the peer does not read its socket");
  return sent == static_cast<ssize_t>(bytes.size());
}

void Connection::share(std::unique_ptr<session::SharedRings> rings, SharedWake wake,
                       std::shared_ptr<void> place) {
  const bool by_socket = wake.by_socket();
  shared_ = std::make_unique<SharedWire>(std::move(rings), std::move(wake), std::move(place));
  output_.send_through(*shared_);
  interest_ =
      EventLoop::Interest::hang_up;  // for `start`, too: a client may ask before the descriptor is watched
  if (watched_) loop_.set_interest(descriptor_.get(), interest_);
  woken_by_ = by_socket ? descriptor_.get() : shared_->descriptor();
  if (Result<void> watched = loop_.watch_arrivals(woken_by_, *this); !watched) {
    woken_by_ = -1;
    return fail(watched.error().text());
  }
  loop_.call_soon(*this);
}

/// Reads once from shared memory. Then waits to be woken, or takes another turn if there is more.
void Connection::read_shared() {
  if (paused_ || leftover_unseen_ || failed() || state_ != State::open) return;
  const bool ended =
      shared_->ended();  // read first: everything that the peer wrote, it wrote before it ended
  const bool has_input = shared_->has_input();
  if (shared_->broken()) return fail("impossible positions in the shared memory");
  if (!has_input && ended) return fail("closed by the peer");
  if (has_input) {
    const auto large = space_for_large_frame();
    if (failed()) return;
    const bool between_frames = leftover_.empty() && large.empty();
    turn_share_.begin();
    if (!between_frames || take_from(*shared_, scratch_.size()) == 0) {
      const std::size_t bytes = shared_->copy(large.empty() ? space_behind_leftover() : large);
      take(large, bytes);
      shared_->release(bytes, std::exchange(wipes_shared_, false));
    }
  }
  if (failed() || paused_ || leftover_unseen_) return;
  if (ended || !shared_->wait_for_input()) loop_.call_by_turns(*this);
}

}  // namespace lightq::broker
