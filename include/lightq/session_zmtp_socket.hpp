/// A connection that carries a session in ZeroMQ messages, without libzmq. docs/session.md, "Transport".
/// Layer: client.
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
#include <lightq/session_socket.hpp>
#include <lightq/session_wire.hpp>
#include <lightq/zmtp_dealer.hpp>
#include <lightq/zmtp_framing.hpp>

namespace lightq::inline v1 {

/// A DEALER with one connection, which is a stream socket that speaks ZMTP 3.1 with the mechanism NULL: to
/// any ROUTER, our broker's or libzmq's. Each frame that is written leaves as a message of one part, from
/// where it lies; messages that come are read as a stream of their bytes. No thread, and no context of
/// libzmq. No call waits, but for the name server in `connect`. One thread.
class SessionZmtpSocket final : public SessionWire {
 public:
  SessionZmtpSocket(const SessionZmtpSocket&) = delete;
  SessionZmtpSocket& operator=(const SessionZmtpSocket&) = delete;
  ~SessionZmtpSocket() override = default;

  /// Begins to connect to `uri` (`tcp://HOST:PORT` or `ipc://PATH`); `connected` tells when the handshake is
  /// through. Errors: those of SessionSocket::connect. `frame_bytes_max`: of what the broker sends, each
  /// frame a message; a longer message ends the connection. 0: any length.
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

  /// Errors also: what ZmtpDealer::broken says.
  Result<std::size_t> read(std::span<std::byte> to) override {
    std::size_t got = take_ahead(to);
    bool more = true;
    for (int receives = 0; more && receives < receives_at_once; ++receives) {
      if (got == to.size() || dealer_.broken()) break;
      Result<Received> received = receive(to.subspan(got));
      if (!received && got == 0) return received.error();
      if (!received) break;  // it is told by the next read
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
      if (!sent) break;  // it is told by the next write
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
  /// What was received ahead, the descriptor does not tell.
  bool pending(short events) override {
    return (events & POLLIN) != 0 && (has_ahead_ || dealer_.broken().has_value());
  }

 private:
  struct Received {
    std::size_t straight = 0;  // to where it belongs
    bool more = false;         // may have come
  };

  // What comes behind a message, headers and small messages, is received here. Large messages cost a call of
  // the system each, and small ones are copied, many of them for one call.
  static constexpr std::size_t ahead_bytes_max = 8 * limits::KiB;
  static_assert(ahead_bytes_max >
                zmtp::greeting_bytes + zmtp::frame_header_bytes_max + zmtp::command_bytes_max);
  // A peer that sends nothing but commands is left after so many.
  static constexpr int receives_at_once = 64;
  static constexpr std::uint64_t message_overhead_max = 1 * limits::KiB;

  SessionZmtpSocket(std::string uri, std::uint64_t message_bytes_max, SessionSocket socket)
      : uri_(std::move(uri)), socket_(std::move(socket)), dealer_(message_bytes_max) {}

  /// Takes the handshake as far as it has come, and says this side's part of it.
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

  /// Receives the rest of the message that has begun into `to`, and what comes behind it ahead, of which
  /// nothing may be left then but the beginning of a header or command.
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
  /// Answers how many bytes of messages it has put into `to`.
  std::size_t take_ahead(std::span<std::byte> to) {
    const ZmtpDealer::Taken taken = dealer_.take(ahead(), to);
    ahead_begin_ += taken.used;
    return taken.got;
  }

  /// Between two messages. What does not leave now does so with the next write, which says what is wrong,
  /// too.
  void answer_ping() {
    if (!dealer_.owes_pong() || framing_.in_midst() || out_begin_ < out_.size()) return;
    dealer_.append_pong(out_);
    (void)flush();
  }

  const std::string uri_;
  SessionSocket socket_;
  ZmtpDealer dealer_;
  ZmtpFraming framing_;
  std::vector<std::byte> out_;  // to leave before the next frame
  std::size_t out_begin_ = 0;   // of it that has not left
  std::array<std::byte, ahead_bytes_max> ahead_;
  std::size_t ahead_begin_ = 0;  // of it that has been taken
  std::size_t ahead_end_ = 0;    // of it that has come
  bool reached_ = false;         // the system has connected
  bool has_ahead_ = false;       // the next read gets something, whatever the descriptor says
};

}  // namespace lightq::inline v1
