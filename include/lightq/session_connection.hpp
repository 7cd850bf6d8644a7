/// One connection of a session: its greeting, its heartbeats, and frames both ways. docs/session.md,
/// "Beginning and end". Layer: client.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/home_process.hpp>
#include <lightq/base/result.hpp>
#include <lightq/protocol/session_link.hpp>
#include <lightq/session_clock.hpp>
#include <lightq/session_inbox.hpp>
#include <lightq/session_memory_socket.hpp>
#include <lightq/session_socket.hpp>
#include <lightq/session_tls_socket.hpp>
#include <lightq/session_wire.hpp>
#include <lightq/session_zmq_socket.hpp>
#include <lightq/session_zmtp_socket.hpp>

namespace lightq::inline v1 {

/// Frames that lie elsewhere and are sent from there, behind a connection's own.
class SessionOutgoing {
 public:
  /// Names the next bytes to send, in order, up to the end of a frame; answers how many of `parts` it has
  /// filled. `bytes_target`: of one frame, or of as many as are not more.
  virtual std::size_t gather(std::span<iovec> parts, std::size_t bytes_target) = 0;
  /// Whether a frame is sent in part, so that no other may come before its rest.
  [[nodiscard]] virtual bool in_midst() const = 0;
  /// So many of the bytes that were named have been sent.
  virtual void written(std::size_t bytes) = 0;

 protected:
  ~SessionOutgoing() = default;
};

/// A connection from `begin` to `drop`; then it may begin anew. Knows the session's own frames (hello,
/// welcome and heartbeat) and hands on all others. No call waits. After an error nothing works but `drop`.
/// Movable. One thread.
class SessionConnection {
 public:
  enum class Phase {
    closed,
    connecting,  ///< the system has not connected yet
    greeting,    ///< hello is on its way
    open,        ///< welcome has come
  };

  /// `hello`: what is said in the beginning, but for the ticket. What the broker sends may be at most as long
  /// as it says. `read_bytes`: how much is read at once. `memory`: what the broker is asked to share where
  /// the connection is one by a Unix socket; of no bytes: nothing.
  explicit SessionConnection(session::Hello hello, std::size_t read_bytes = SessionInbox::read_bytes_least,
                             const session::SharedSizes& memory = {})
      : hello_(std::move(hello)), memory_(memory), inbox_(hello_.frame_bytes_max, read_bytes) {}

  /// Begins to connect. Errors: those of SessionSocket::connect, SessionTlsSocket::connect,
  /// SessionZmqSocket::connect or SessionZmtpSocket::connect.
  Result<void> begin(const SessionAddress& address, SessionTime now) {
    drop();
    Result<std::unique_ptr<SessionWire>> wire = connect(address, hello_.frame_bytes_max, memory_.any());
    if (!wire) return wire.error();
    if (address.ticket.size() > session::ticket_bytes_max) {
      return Error{ErrorCode::invalid_argument, "a ticket of " + std::to_string(address.ticket.size()) +
                                                    " bytes is longer than the protocol allows"};
    }
    wire_ = Wire(wire->release());
    hello_.ticket = address.ticket;
    phase_ = Phase::connecting;
    heard_ = sent_ = now;
    return {};
  }

  /// Ends the connection without a word.
  void drop() {
    wire_.reset();  // a forked child's copy is left as it is
    if (std::exchange(held_, false) && kept_.empty()) kept_ = inbox_.give_memory();
    inbox_.clear();
    out_.clear();
    out_begin_ = 0;
    blocked_ = false;
    unheard_bytes_ = 0;
    share_request_ = 0;
    phase_ = Phase::closed;
  }

  /// Reads what has come and calls `take(const SessionFrame&)`, which answers Result<void>, for every frame
  /// that is not the session's own; a limited amount in one call. Where `take` calls `hold`, its frame stays
  /// valid and nothing is read or taken behind it, until `release`. Errors: closed, io_error, invalid_request
  /// (the broker breaks the protocol), and `take`'s.
  template <typename Take>
  Result<void> receive(SessionTime now, Take&& take) {
    if (phase_ == Phase::connecting) {
      if (Result<void> greeted = greet(now); !greeted) return greeted.error();
    }
    if (phase_ == Phase::connecting || phase_ == Phase::closed) return {};
    if (std::exchange(was_held_, false)) heard_ = now;
    if (Result<void> taken = take_frames(take); !taken) return taken.error();
    for (int reads = 0; reads < reads_at_once && !held_; ++reads) {
      const std::span<std::byte> room = inbox_.room();
      Result<std::size_t> got = wire_->read(room);
      if (!got) return got.error();
      if (*got == 0) return {};
      inbox_.add(*got);
      const std::uint64_t frames_before = frames_;
      const Result<void> taken = take_frames(take);
      unheard_bytes_ += *got;
      if (frames_ != frames_before || unheard_bytes_ >= session::heard_bytes_least) {
        heard_ = now;
        unheard_bytes_ = 0;
      }
      if (!taken) return taken.error();
      if (*got < room.size()) return {};
    }
    return {};
  }
  /// Nothing is read or taken from now on. The frame that was taken last stays valid, until `release`, over
  /// `drop` and `begin` too, which let the next connection read until it is held as well.
  void hold() { held_ = true; }
  void release() {
    was_held_ |= held_;
    held_ = false;
    kept_ = {};
  }
  [[nodiscard]] bool is_held() const { return held_; }

  /// What time demands: a heartbeat, if nothing else was sent. Error: timeout, nothing was heard for twice
  /// the heartbeat. To be called after `receive`.
  Result<void> tick(SessionTime now) {
    if (now >= silence_ends()) {
      return Error{ErrorCode::timeout, "nothing was heard from the broker for twice its heartbeat"};
    }
    beat(now);
    return {};
  }
  /// The heartbeat alone, for who has not read what may have come.
  void beat(SessionTime now) {
    if (now >= heartbeat_due() && !has_unsent()) put(session::Heartbeat{}, 0, 0);
  }

  /// Puts a frame behind those that wait to be sent.
  template <typename Body>
  void put(const Body& body, std::uint32_t channel, std::uint32_t request) {
    put_bytes(session::encode_frame(body, channel, request));
  }
  /// The same with a frame's bytes, or the rest of one.
  void put_bytes(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  /// Sends what waits and then, if there are any, `batches`, as far as the system takes it. Errors: closed,
  /// io_error.
  Result<void> send(SessionTime now, SessionOutgoing* batches) {
    if (phase_ == Phase::closed || phase_ == Phase::connecting) return {};
    std::array<iovec, parts_max> parts;
    while (true) {
      const std::size_t own = batches != nullptr && batches->in_midst() ? 0 : out_.size() - out_begin_;
      std::size_t used = 0;
      if (own > 0) parts[used++] = {out_.data() + out_begin_, own};
      if (batches != nullptr) {
        used += batches->gather(std::span(parts).subspan(used), wire_->write_bytes_target());
      }
      blocked_ = false;
      if (used == 0) return flush();
      std::size_t wanted = 0;
      for (std::size_t part = 0; part < used; ++part) wanted += parts[part].iov_len;
      Result<std::size_t> written = wire_->write(std::span(parts).first(used));
      if (!written) return written.error();
      if (*written > 0) sent_ = now;
      const std::size_t of_own = std::min(own, *written);
      wrote_own(of_own);
      if (*written > of_own) batches->written(*written - of_own);
      if (*written < wanted) {
        blocked_ = true;
        return {};
      }
    }
  }

  [[nodiscard]] Phase phase() const { return phase_; }
  /// What the broker said; valid while open.
  [[nodiscard]] const session::Welcome& welcome() const { return welcome_; }
  /// A number for a request, another one each time.
  std::uint32_t next_request() {
    if (++request_ == 0) ++request_;
    return request_;
  }
  /// -1 while closed. Another one after each `begin`.
  [[nodiscard]] int fd() const { return wire_ == nullptr ? -1 : wire_->fd(); }
  /// Whether there is something to do when the descriptor is writable.
  [[nodiscard]] bool wants_write() const {
    return wire_ != nullptr && wire_->tells_room_by_writable() &&
           (phase_ == Phase::connecting ? wire_->connects_by_writable() : has_unsent());
  }
  /// Whether `send` has something to do once there is room.
  [[nodiscard]] bool has_unsent() const {
    return blocked_ || (phase_ != Phase::closed && out_begin_ < out_.size());
  }
  /// What to wait for on the descriptor, as poll(2) takes it.
  [[nodiscard]] short wait_events() const {
    if (wants_write()) return static_cast<short>(held_ ? POLLOUT : POLLIN | POLLOUT);
    const bool told_by_reading = has_unsent() && wire_ != nullptr && !wire_->tells_room_by_writable();
    return static_cast<short>(held_ && !told_by_reading ? 0 : POLLIN);
  }
  /// Whether the other side has ended the connection, behind what it has sent. Not known of ZeroMQ's sockets.
  [[nodiscard]] bool has_hung_up() const { return wire_ != nullptr && wire_->has_hung_up(); }
  /// Whether `receive` or `send` has something to do that the descriptor may not tell: to be asked before one
  /// waits for it.
  [[nodiscard]] bool pending() const {
    if (phase_ == Phase::closed || phase_ == Phase::connecting) return false;
    return wire_->pending(static_cast<short>((held_ ? 0 : POLLIN) | (has_unsent() ? POLLOUT : 0)));
  }
  /// When `tick` has something to do next.
  [[nodiscard]] SessionTime next_timer() const {
    return has_unsent() ? silence_ends() : std::min(heartbeat_due(), silence_ends());
  }

 private:
  /// Ends a wire in the process that began it, and nowhere else.
  struct EndAtHome {
    HomeProcess home;
    void operator()(SessionWire* wire) const {
      if (home.is_here()) delete wire;
    }
  };
  using Wire = std::unique_ptr<SessionWire, EndAtHome>;

  static constexpr std::size_t parts_max = 64;
  static constexpr int reads_at_once = 16;

  static Result<std::unique_ptr<SessionWire>> connect(const SessionAddress& address,
                                                      std::uint64_t frame_bytes_max, bool shares) {
    if (address.identity != nullptr) {
      auto made = SessionZmqSocket::connect(address.uri, address.context, address.identity, frame_bytes_max);
      if (!made) return made.error();
      return std::unique_ptr<SessionWire>(std::move(*made));
    }
    if (address.over_zmq) {
      auto made = SessionZmtpSocket::connect(address.uri, frame_bytes_max);
      if (!made) return made.error();
      return std::unique_ptr<SessionWire>(std::move(*made));
    }
    if (!address.certificate_sha256.empty()) {
      auto made = SessionTlsSocket::connect(address.uri, address.certificate_sha256);
      if (!made) return made.error();
      return std::unique_ptr<SessionWire>(std::move(*made));
    }
    Result<SessionSocket> made = SessionSocket::connect(address.uri);
    if (!made) return made.error();
    if (shares && address.uri.starts_with("ipc://"))
      return std::unique_ptr<SessionWire>(std::make_unique<SessionMemorySocket>(std::move(*made)));
    return std::unique_ptr<SessionWire>(std::make_unique<SessionSocket>(std::move(*made)));
  }

  Result<void> flush() {
    const Result<bool> flushed = wire_->flush();
    if (!flushed) return flushed.error();
    blocked_ = !*flushed;
    return {};
  }

  Result<void> greet(SessionTime now) {
    Result<bool> connected = wire_->connected();
    if (!connected) return connected.error();
    if (!*connected) return {};
    phase_ = Phase::greeting;
    heard_ = now;
    hello_request_ = next_request();
    put(hello_, 0, hello_request_);
    return {};
  }

  template <typename Take>
  Result<void> take_frames(Take& take) {
    while (!held_) {
      Result<std::optional<SessionFrame>> frame = inbox_.next();
      if (!frame) return frame.error();
      if (!frame->has_value()) return {};
      ++frames_;
      Result<void> taken = take_frame(**frame, take);
      if (!taken) return taken.error();
    }
    return {};
  }

  template <typename Take>
  Result<void> take_frame(const SessionFrame& frame, Take& take) {
    using session::Op;
    if (frame.header.op == Op::heartbeat) return {};
    if (frame.header.op == Op::welcome) return take_welcome(frame);
    if (frame.header.op == Op::shared) return take_shared(frame);
    if (frame.header.op == Op::error && is_answer_to_share(frame)) return open_now();  // then without
    const bool of_greeting = frame.header.op == Op::error || frame.header.op == Op::goodbye;
    if (phase_ == Phase::greeting && !of_greeting) {
      return Error{ErrorCode::invalid_request,
                   "the broker sent " + std::string(rule_of(frame.header.op).name) + " before its welcome"};
    }
    return take(frame);
  }

  Result<void> take_welcome(const SessionFrame& frame) {
    if (phase_ != Phase::greeting || frame.header.request != hello_request_) {
      return Error{ErrorCode::invalid_request, "the broker sent a welcome that was not asked for"};
    }
    Result<session::Welcome> welcome = session::Welcome::decode(frame.body, frame.header.flags);
    if (!welcome) return welcome.error();
    if (welcome->version < hello_.oldest_version || welcome->version > hello_.newest_version) {
      return Error{
          ErrorCode::invalid_request,
          "the broker chose version " + std::to_string(welcome->version) + ", which was not offered"};
    }
    welcome_ = *welcome;
    if (!wire_->can_share()) return open_now();
    // Nothing is said behind it until the answer has come: by then it is known where to say it.
    share_request_ = next_request();
    put(session::Share{memory_, true}, 0, share_request_);
    return {};
  }
  Result<void> open_now() {
    share_request_ = 0;
    phase_ = Phase::open;
    return {};
  }
  [[nodiscard]] bool is_answer_to_share(const SessionFrame& frame) const {
    return share_request_ != 0 && frame.header.request == share_request_;
  }
  Result<void> take_shared(const SessionFrame& frame) {
    const Result<session::Shared> shared = session::Shared::decode(frame.body, frame.header.flags);
    if (!shared) return shared.error();
    if (!is_answer_to_share(frame) || shared->sizes != memory_ || !shared->wakes_by_socket)
      return Error{ErrorCode::invalid_request, "the broker shares memory that was not asked for"};
    if (Result<void> taken = wire_->share(shared->sizes); !taken) return taken.error();
    return open_now();
  }

  void wrote_own(std::size_t bytes) {
    out_begin_ += bytes;
    if (out_begin_ < out_.size()) return;
    out_.clear();
    out_begin_ = 0;
    if (out_.capacity() > out_keep_bytes_max) out_.shrink_to_fit();
  }

  /// What is not read because a frame is held is no silence.
  [[nodiscard]] SessionTime silence_ends() const {
    const bool counts =
        hello_.heartbeat_ms != 0 && !held_ && (phase_ == Phase::greeting || phase_ == Phase::open);
    return counts ? heard_ + Timeout(hello_.heartbeat_ms) * 2 : session_never;
  }
  [[nodiscard]] SessionTime heartbeat_due() const {
    const bool counts = phase_ == Phase::open && welcome_.heartbeat_ms != 0;
    return counts ? sent_ + Timeout(welcome_.heartbeat_ms) / 2 : session_never;
  }

  static constexpr std::size_t out_keep_bytes_max = 64 * limits::KiB;

  session::Hello hello_;
  session::SharedSizes memory_;
  session::Welcome welcome_;
  Wire wire_;  // null while closed
  SessionInbox inbox_;
  std::vector<std::byte> out_;  // frames of the connection's own
  std::size_t out_begin_ = 0;   // of them that has not been sent
  Phase phase_ = Phase::closed;
  SessionTime heard_;
  SessionTime sent_;
  std::uint64_t frames_ = 0;       // taken
  std::size_t unheard_bytes_ = 0;  // of a frame that is not whole, come since heard_
  std::uint32_t request_ = 0;
  std::uint32_t hello_request_ = 0;
  std::uint32_t share_request_ = 0;  // that is not answered yet
  bool blocked_ = false;             // the system took less than there was
  bool held_ = false;
  bool was_held_ = false;        // since the last `receive`
  std::vector<std::byte> kept_;  // where a frame lies that was held as its connection was dropped
};

}  // namespace lightq::inline v1
