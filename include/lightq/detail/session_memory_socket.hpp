/// Carries a session through memory that the broker shares. docs/session.md, "Shared memory". Layer: client.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <lightq/base/result.hpp>
#include <lightq/base/shared_memory.hpp>
#include <lightq/base/socket_wake.hpp>
#include <lightq/detail/session_socket.hpp>
#include <lightq/detail/session_wire.hpp>
#include <lightq/protocol/session_memory.hpp>

namespace lightq::inline v1 {

/// A Unix socket until `share`, then two rings in shared memory. `share` changes the descriptor. From then
/// on, call `pending` before waiting for it, which tells the broker that it has to wake this side. Not
/// movable. For one thread.
class SessionMemorySocket final : public SessionWire {
 public:
  explicit SessionMemorySocket(SessionSocket socket) : socket_(std::move(socket)) {
    allow_descriptors(socket_.fd(), true);
  }
  SessionMemorySocket(const SessionMemorySocket&) = delete;
  SessionMemorySocket& operator=(const SessionMemorySocket&) = delete;
  ~SessionMemorySocket() override {
    forget_descriptors();
    if (waiting_ >= 0) ::close(waiting_);
  }

  Result<bool> connected() override { return socket_.connected(); }

  Result<std::size_t> read(std::span<std::byte> to) override {
    if (!rings_) return receive(to);
    const bool ended = ended_;  // read first: the broker wrote all its bytes before it ended
    ByteRingReader& reader = rings_->reader();
    const std::size_t got = reader.copy(to);
    if (got == 0) return nothing(ended);
    looks_ = 0;
    if (reader.release(got)) send_wake(socket_.fd());
    return got;
  }

  Result<std::size_t> write(std::span<iovec> parts) override {
    if (!rings_) return socket_.write(parts);
    if (ended_) return Error{ErrorCode::closed, "the broker ended the connection"};
    ByteRingWriter& writer = rings_->writer();
    std::size_t sent = 0;
    for (const iovec& part : parts) {
      const std::size_t taken = writer.write({static_cast<const std::byte*>(part.iov_base), part.iov_len});
      sent += taken;
      if (taken < part.iov_len) break;
    }
    if (writer.broken()) return nonsense();
    if (sent > 0 && writer.publish()) send_wake(socket_.fd());
    return sent;
  }
  [[nodiscard]] std::size_t write_bytes_target() const override { return socket_.write_bytes_target(); }

  [[nodiscard]] int fd() const override { return rings_ ? waiting_ : socket_.fd(); }
  [[nodiscard]] bool has_hung_up() const override { return SessionWire::has_hung_up(socket_.fd()); }
  [[nodiscard]] bool tells_room_by_writable() const override { return !rings_; }
  bool pending(short events) override {
    if (!rings_) return false;
    if (waits_) hear();  // the wake-up that was received would wake it again
    if (ended_) return true;
    waits_ = true;
    return ((events & POLLIN) != 0 && !rings_->reader().wait()) ||
           ((events & POLLOUT) != 0 && !rings_->writer().wait());
  }

  [[nodiscard]] bool can_share() const override { return !rings_; }
  Result<void> share(const session::SharedSizes& sizes) override {
    allow_descriptors(socket_.fd(), false);
    if (rings_ || descriptor_count_ != 1)
      return Error{ErrorCode::invalid_request, "the broker did not send the descriptor of its shared memory"};
    descriptor_count_ = 0;
    Result<SharedMemory> memory = SharedMemory::adopt(descriptors_[0], sizes.whole());
    if (!memory) return memory.error();
    memory->close_descriptor();
    if (Result<void> watched = watch(); !watched) return watched;
    rings_.emplace(std::move(*memory), sizes, session::SharedSide::client);
    return {};
  }

 private:
  // A program that polls without ever waiting checks the socket for the end after this many empty reads.
  static constexpr unsigned looks_max = 64;

  static Error nonsense() {
    return {ErrorCode::invalid_request, "the shared memory of the broker contains impossible positions"};
  }

  /// Reads from the socket, and keeps descriptors that arrive with the bytes.
  Result<std::size_t> receive(std::span<std::byte> to) {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors_)> control{};
    iovec part{to.data(), to.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_LEN(sizeof descriptors_);  // the system closes descriptors beyond these
    const ssize_t got = ::recvmsg(socket_.fd(), &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return SessionSocket::received(got);
    for (cmsghdr* about = CMSG_FIRSTHDR(&message); about != nullptr; about = CMSG_NXTHDR(&message, about)) {
      if (about->cmsg_level != SOL_SOCKET || about->cmsg_type != SCM_RIGHTS) continue;
      forget_descriptors();
      descriptor_count_ = (about->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      std::memcpy(descriptors_.data(), CMSG_DATA(about), descriptor_count_ * sizeof(int));
    }
    return static_cast<std::size_t>(got);
  }
  void forget_descriptors() {
    for (; descriptor_count_ > 0; --descriptor_count_) ::close(descriptors_[descriptor_count_ - 1]);
  }

  /// Puts the socket into an epoll instance, which is waited for instead. After a message over a socket the
  /// system assumes that the sender will sleep, and delays the process that it wakes. An epoll instance in
  /// between prevents that.
  Result<void> watch() {
    waiting_ = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event wake{EPOLLIN | EPOLLRDHUP, {}};
    if (waiting_ >= 0 && ::epoll_ctl(waiting_, EPOLL_CTL_ADD, socket_.fd(), &wake) == 0) return {};
    return Error{ErrorCode::io_error, "cannot wait for the wakes of a session in shared memory", errno};
  }

  /// Handles an empty ring: consumes wake-ups, and checks whether the broker is still there.
  Result<std::size_t> nothing(bool ended) {
    const bool broken = rings_->reader().broken();
    if (broken) hear();  // a broker that has ended removes its memory
    if (ended || (broken && ended_)) return Error{ErrorCode::closed, "the broker ended the connection"};
    if (broken) return nonsense();
    if (waits_ || ++looks_ >= looks_max) hear();
    return std::size_t{0};
  }
  /// Consumes wake-ups, and notices the end of the connection.
  void hear() {
    waits_ = false;
    looks_ = 0;
    ended_ |= !take_wakes(socket_.fd());
  }

  SessionSocket socket_;
  std::optional<session::SharedRings> rings_;  // nothing: the bytes go through the socket
  std::array<int, 3> descriptors_{};           // received descriptors; only the first is used
  std::size_t descriptor_count_ = 0;
  int waiting_ = -1;    // the descriptor to wait for once there are rings; otherwise -1
  unsigned looks_ = 0;  // empty reads since the socket was checked
  bool waits_ = false;  // has announced that it waits, and may have been woken
  bool ended_ = false;
};

}  // namespace lightq::inline v1
