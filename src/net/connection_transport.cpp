/// Watches, pauses, shares and closes a connection's socket. Layer: net.
#include "net/connection_transport.hpp"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

namespace lightq::broker {

namespace {
constexpr std::chrono::milliseconds wakes_left_most{100};
}  // namespace

bool ConnectionTransport::watch() {
  watched_ = static_cast<bool>(loop_.watch(descriptor_.get(), connection_, interest_));
  return watched_;
}

void ConnectionTransport::close() {
  stop_waking();
  if (std::exchange(watched_, false)) loop_.unwatch(descriptor_.get(), connection_);
  descriptor_.reset();
}

/// Called before the descriptor is closed. Reads the wakes that have arrived over it: the system resets a
/// Unix socket that is closed with unread bytes, instead of showing its peer the end.
void ConnectionTransport::stop_waking() {
  if (woken_by_ < 0) return;
  loop_.cancel(std::exchange(wakes_timer_, 0));
  const bool by_socket = woken_by_ == descriptor_.get();
  loop_.unwatch_arrivals(std::exchange(woken_by_, -1));
  if (by_socket) static_cast<void>(receive_wakes(descriptor_));
}

void ConnectionTransport::set_paused(bool paused) {
  paused_ = paused;
  update_interest();
}

void ConnectionTransport::set_flow(Flow flow) {
  flow_ = flow;
  update_interest();
}

void ConnectionTransport::update_interest() {
  if (is_shared()) return;
  using Interest = EventLoop::Interest;
  const Interest wanted = flow_ == Flow::blocked
                              ? (paused_ ? Interest::writable : Interest::readable_and_writable)
                          : paused_ ? Interest::hang_up
                                    : Interest::readable;
  if (wanted == interest_ || is_closed()) return;
  interest_ = wanted;
  if (watched_) loop_.set_interest(descriptor_.get(), wanted);
}

bool ConnectionTransport::is_local() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return getsockname(descriptor_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         address.ss_family == AF_UNIX;
}

bool ConnectionTransport::has_unreceived_input() const {
  int bytes = 0;
  return ioctl(descriptor_.get(), FIONREAD, &bytes) != 0 || bytes > 0;
}

void ConnectionTransport::set_low_water(std::size_t bytes) {
  if (std::exchange(low_water_, bytes) != bytes) broker::set_low_water(descriptor_.get(), bytes);
}

void ConnectionTransport::shut_output() const {
  if (!is_closed()) shutdown(descriptor_.get(), SHUT_WR);
}

ssize_t ConnectionTransport::send_descriptors(ByteView bytes, std::span<const int> descriptors) const {
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
  return sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Result<void> ConnectionTransport::share(std::unique_ptr<session::SharedRings> rings, SharedWake wake,
                                        std::shared_ptr<void> place) {
  const bool by_socket = wake.by_socket();
  shared_ = std::make_unique<SharedWire>(std::move(rings), std::move(wake), std::move(place));
  interest_ = EventLoop::Interest::hang_up;  // for `watch`, too: a client may ask before that
  if (watched_) loop_.set_interest(descriptor_.get(), interest_);
  woken_by_ = by_socket ? descriptor_.get() : shared_->descriptor();
  Result<void> watched = loop_.watch_arrivals(woken_by_, connection_);
  if (!watched) woken_by_ = -1;
  return watched;
}

void ConnectionTransport::take_wakes(EventLoop::Readiness readiness) {
  if (readiness.readable && shared_->descriptor() < 0)
    shared_->should_read_wakes() ? read_wakes() : read_wakes_later();
  if (readiness.hung_up) shared_->end();
}

bool ConnectionTransport::take_late_wakes() {
  if (!std::exchange(wakes_are_late_, false)) return false;
  shared_->note_wakes_read();
  read_wakes();
  return true;
}

void ConnectionTransport::read_wakes() {
  if (!receive_wakes(descriptor_)) shared_->end();
}

/// A client that sends more wakes than it was asked for may fill the socket in one event. It then waits for
/// space and sends nothing more, so no other event would follow.
void ConnectionTransport::read_wakes_later() {
  if (wakes_timer_ != 0) return;
  wakes_timer_ = loop_.at(loop_.call_time() + wakes_left_most, [this] {
    wakes_timer_ = 0;
    wakes_are_late_ = true;
    loop_.call_soon(connection_);
  });
}

}  // namespace lightq::broker
