/// A connection that carries an unencrypted session in ZeroMQ messages, without libzmq. docs/session.md,
/// "Transport". Layer: client.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/detail/session_socket.hpp>
#include <lightq/detail/session_wire.hpp>
#include <lightq/detail/zmtp_dealer.hpp>
#include <lightq/detail/zmtp_framing.hpp>

namespace lightq::inline v1 {

/// A DEALER with one connection: a stream socket that speaks ZMTP 3.1 with the mechanism NULL to any ROUTER,
/// of this broker or of libzmq. Sends each frame as a message of one part, without copying it. Received
/// messages are read as a stream of their bytes. Uses no thread and no context of libzmq. No call waits,
/// except for the name server in `connect`. For one thread.
class SessionZmtpSocket final : public SessionWire {
 public:
  SessionZmtpSocket(const SessionZmtpSocket&) = delete;
  SessionZmtpSocket& operator=(const SessionZmtpSocket&) = delete;
  ~SessionZmtpSocket() override = default;

  /// Starts to connect to `uri` (`tcp://HOST:PORT` or `ipc://PATH`); `connected` reports when the handshake
  /// is complete. `frame_bytes_max` is the longest frame accepted from the broker; each frame is a message,
  /// and a longer message ends the connection. 0: any length. Errors: those of SessionSocket::connect.
  static Result<std::unique_ptr<SessionZmtpSocket>> connect(const std::string& uri,
                                                            std::uint64_t frame_bytes_max = 0) {
    Result<SessionSocket> socket = SessionSocket::connect(uri);
    if (!socket) return socket.error();
    const std::uint64_t message_bytes_max = frame_bytes_max == 0 ? 0 : frame_bytes_max + message_overhead_max;
    return std::unique_ptr<SessionZmtpSocket>(
        new SessionZmtpSocket(uri, message_bytes_max, std::move(*socket)));
  }

  Result<bool> connected() override {
    if (!reached_) {
      Result<bool> reached = socket_.connected();
      if (!reached || !*reached) return reached;
      reached_ = true;
      ZmtpDealer::begin(out_);
    }
    if (dealer_.complete()) return true;
    if (Result<void> shaken = shake_hands(); !shaken)
      return Error{ErrorCode::io_error, "cannot connect to " + uri_ + ": " + shaken.error().text()};
    has_ahead_ = dealer_.complete() && ahead_begin_ < ahead_end_;
    return dealer_.complete();
  }

  /// Additional errors: those of ZmtpDealer::broken.
  Result<std::size_t> read(std::span<std::byte> to) override {
    std::size_t got = take_ahead(to);
    bool more = true;
    for (int receives = 0; more && receives < receives_at_once; ++receives) {
      if (got == to.size() || dealer_.broken()) break;
      Result<Received> received = receive(to.subspan(got));
      if (!received && got == 0) return received.error();
      if (!received) break;  // the next read returns the error
      got += received->straight;
      more = received->more;
      got += take_ahead(to.subspan(got));
    }
    has_ahead_ = got == to.size() && ahead_begin_ < ahead_end_;
    answer_ping();
    if (got == 0 && dealer_.broken()) return *dealer_.broken();
    return got;
  }

  Result<std::size_t> write(std::span<iovec> parts) override {
    const Result<bool> flushed = flush();
    if (!flushed) return flushed.error();
    if (!*flushed) return std::size_t{0};
    std::size_t bytes = 0;
    for (const iovec& part : parts) bytes += part.iov_len;
    std::size_t taken = 0;
    while (taken < bytes) {
      const std::span<iovec> sending = framing_.gather(parts, taken);
      const Result<std::size_t> sent = socket_.write(sending);
      if (!sent && taken == 0) return sent.error();
      if (!sent) break;  // the next write returns the error
      taken += framing_.sent(*sent, out_);
      if (*sent < framing_.gathered_bytes()) break;
    }
    answer_ping();
    return taken;
  }
  Result<bool> flush() override {
    while (out_begin_ < out_.size()) {
      iovec part{out_.data() + out_begin_, out_.size() - out_begin_};
      Result<std::size_t> sent = socket_.write(std::span(&part, 1));
      if (!sent) return sent.error();
      if (*sent == 0) return false;
      out_begin_ += *sent;
    }
    out_.clear();
    out_begin_ = 0;
    return true;
  }
  [[nodiscard]] std::size_t write_bytes_target() const override { return socket_.write_bytes_target(); }

  [[nodiscard]] int fd() const override { return socket_.fd(); }
  [[nodiscard]] bool tells_room_by_writable() const override { return true; }
  [[nodiscard]] bool connects_by_writable() const override { return !reached_ || out_begin_ < out_.size(); }
  /// The descriptor does not show bytes that were received ahead.
  bool pending(short events) override {
    return (events & POLLIN) != 0 && (has_ahead_ || dealer_.broken().has_value());
  }

 private:
  struct Received {
    std::size_t straight = 0;  // bytes received directly into the caller's buffer
    bool more = false;         // more bytes may have arrived
  };

  // Headers and small messages behind a message are received into this buffer. A large message costs a system
  // call of its own; small ones are copied, many per call.
  static constexpr std::size_t ahead_bytes_max = 8 * limits::KiB;
  static_assert(ahead_bytes_max >
                zmtp::greeting_bytes + zmtp::frame_header_bytes_max + zmtp::command_bytes_max);
  // The limit of receives in one read, for a peer that sends only commands.
  static constexpr int receives_at_once = 64;
  static constexpr std::uint64_t message_overhead_max = 1 * limits::KiB;

  SessionZmtpSocket(std::string uri, std::uint64_t message_bytes_max, SessionSocket socket)
      : uri_(std::move(uri)), socket_(std::move(socket)), dealer_(message_bytes_max) {}

  /// Processes the received part of the handshake, and sends this side's part.
  Result<void> shake_hands() {
    for (bool more = true; more && !dealer_.complete();) {
      const Result<Received> received = receive({});
      if (!received) return received.error();
      more = received->more;
      const Result<std::size_t> used = dealer_.introduce(ahead(), out_);
      if (!used) return used.error();
      ahead_begin_ += *used;
    }
    const Result<bool> flushed = flush();
    if (!flushed) return flushed.error();
    return {};
  }

  /// Receives the rest of the current message into `to`, and the bytes behind it into `ahead_`. Requires:
  /// `ahead_` has at most the beginning of a header or command.
  Result<Received> receive(std::span<std::byte> to) {
    if (ahead_begin_ > 0) {
      std::memmove(ahead_.data(), ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_);
      ahead_end_ -= std::exchange(ahead_begin_, 0);
    }
    const auto straight = static_cast<std::size_t>(std::min<std::uint64_t>(dealer_.left(), to.size()));
    std::array<iovec, 2> parts;
    std::size_t used = 0;
    std::size_t wanted = straight;
    if (straight > 0) parts[used++] = {to.data(), straight};
    if (straight == 0 || straight < to.size()) {
      parts[used++] = {ahead_.data() + ahead_end_, ahead_.size() - ahead_end_};
      wanted += ahead_.size() - ahead_end_;
    }
    const Result<std::size_t> got = socket_.read_parts(std::span(parts).first(used));
    if (!got) return got.error();
    const Received received{std::min(straight, *got), *got == wanted};
    dealer_.skip(received.straight);
    ahead_end_ += *got - received.straight;
    return received;
  }

  [[nodiscard]] ByteView ahead() const {
    return ByteView(ahead_).subspan(ahead_begin_, ahead_end_ - ahead_begin_);
  }
  /// Moves message bytes from `ahead_` into `to`, and returns how many.
  std::size_t take_ahead(std::span<std::byte> to) {
    const ZmtpDealer::Taken taken = dealer_.take(ahead(), to);
    ahead_begin_ += taken.used;
    return taken.got;
  }

  /// Answers a PING between two messages. Bytes that are not sent now are sent with the next write, which
  /// also reports errors.
  void answer_ping() {
    if (!dealer_.owes_pong() || framing_.in_midst() || out_begin_ < out_.size()) return;
    dealer_.append_pong(out_);
    (void)flush();
  }

  const std::string uri_;
  SessionSocket socket_;
  ZmtpDealer dealer_;
  ZmtpFraming framing_;
  std::vector<std::byte> out_;  // to be sent before the next frame
  std::size_t out_begin_ = 0;   // index of the first byte not sent
  std::array<std::byte, ahead_bytes_max> ahead_;
  std::size_t ahead_begin_ = 0;  // first byte not taken
  std::size_t ahead_end_ = 0;    // end of the received bytes
  bool reached_ = false;         // the system has connected
  bool has_ahead_ = false;       // the next read returns bytes, even if the descriptor is not readable
};

}  // namespace lightq::inline v1
