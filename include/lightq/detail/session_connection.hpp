/// One connection of a session: its handshake, its heartbeats, and frames in both directions.
/// docs/session.md, "Beginning and end". Layer: client.
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
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_inbox.hpp>
#include <lightq/detail/session_memory_socket.hpp>
#include <lightq/detail/session_socket.hpp>
#include <lightq/detail/session_tls_socket.hpp>
#include <lightq/detail/session_wire.hpp>
#include <lightq/detail/session_zmq_socket.hpp>
#include <lightq/detail/session_zmtp_socket.hpp>
#include <lightq/protocol/session_link.hpp>

namespace lightq::inline v1 {

/// An interface to frames that a producer keeps in its own memory. A connection sends them from there, after
/// its own frames.
class SessionOutgoing {
 public:
  /// Fills `parts` with the next bytes to send, in order, up to the end of a frame. Returns how many parts it
  /// has filled. Together they have the bytes of one frame, or of as many frames as fit into `bytes_target`.
  virtual std::size_t gather(std::span<iovec> parts, std::size_t bytes_target) = 0;
  /// Returns true if a frame was sent in part, so that its rest must be sent before any other frame.
  [[nodiscard]] virtual bool in_midst() const = 0;
  /// Records that `bytes` of the gathered bytes have been sent.
  virtual void written(std::size_t bytes) = 0;

 protected:
  ~SessionOutgoing() = default;
};

/// A connection from `begin` to `drop`; afterwards it may begin again. Handles the session's own frames
/// (hello, welcome and heartbeat) and passes all others to its owner. No call waits. After an error only
/// `drop` works. Movable. For one thread.
class SessionConnection {
 public:
  enum class Phase {
    closed,
    connecting,  ///< the system has not connected yet
    greeting,    ///< hello was sent or is being sent
    open,        ///< welcome has arrived
  };

  /// `hello` is the client's first frame without the ticket; frames from the broker may be at most as long as
  /// it says. `read_bytes` is the size of a read. `memory` is the shared memory to request over a Unix
  /// socket; with sizes of 0, none is requested.
  explicit SessionConnection(session::Hello hello, std::size_t read_bytes = SessionInbox::read_bytes_least,
                             const session::SharedSizes& memory = {})
      : hello_(std::move(hello)), memory_(memory), inbox_(hello_.frame_bytes_max, read_bytes) {}

  /// Starts to connect. Errors: those of SessionSocket::connect, SessionTlsSocket::connect,
  /// SessionZmqSocket::connect or SessionZmtpSocket::connect.
  Result<void> begin(const SessionAddress& address, SessionTime now) {
    drop();
    Result<std::unique_ptr<SessionWire>> wire = connect(address, hello_.frame_bytes_max, memory_.any());
    if (!wire) return wire.error();
    if (address.ticket.size() > session::ticket_bytes_max) {
      return Error{ErrorCode::invalid_argument, "a ticket of " + std::to_string(address.ticket.size()) +
                                                    " bytes is longer than a session allows"};
    }
    wire_ = Wire(wire->release());
    hello_.ticket = address.ticket;
    phase_ = Phase::connecting;
    heard_ = sent_ = now;
    return {};
  }

  /// Ends the connection without a goodbye.
  void drop() {
    wire_.reset();  // in a forked child this leaves the parent's connection alone
    if (std::exchange(held_, false) && kept_.empty()) kept_ = inbox_.give_memory();
    inbox_.clear();
    out_.clear();
    out_begin_ = 0;
    blocked_ = false;
    unheard_bytes_ = 0;
    share_request_ = 0;
    phase_ = Phase::closed;
  }

  /// Reads available bytes, a limited amount per call. Calls `take(const SessionFrame&)`, which returns
  /// Result<void>, for every frame that is not the session's own. If `take` calls `hold`, its frame stays
  /// valid and nothing more is read or taken until `release`. Errors: closed, io_error, invalid_request (the
  /// broker violates the protocol), and those of `take`.
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
  /// While a frame is held: reads available bytes, a limited amount, and calls `look(const SessionFrame&)`
  /// for each frame with this operation that waits behind the held one and was not shown before. The frames
  /// are taken later. Errors: closed, io_error.
  template <typename Look>
  Result<void> look_ahead(session::Op op, Look&& look) {
    if (!held_ || phase_ != Phase::open) return {};
    for (int reads = 0; reads < reads_at_once && inbox_.unused_bytes() < ahead_bytes_max; ++reads) {
      // Needs new memory only if there is more than fits behind the held frame.
      std::span<std::byte> room = inbox_.room_behind();
      if (room.empty()) {
        if (!may_read()) break;
        if (kept_.empty()) kept_ = inbox_.part_with_memory();
        room = inbox_.room();
      }
      Result<std::size_t> got = wire_->read(room);
      if (!got) return got.error();
      inbox_.add(*got);
      if (*got < room.size()) break;
    }
    inbox_.look_ahead(op, look);
    return {};
  }
  /// Stops taking frames, and reading except in `look_ahead`. The last frame taken stays valid until
  /// `release`, even after `drop` and `begin`. A new connection reads until it is held too.
  void hold() { held_ = true; }
  void release() {
    was_held_ |= held_;
    held_ = false;
    kept_ = {};
  }
  [[nodiscard]] bool is_held() const { return held_; }

  /// Sends a heartbeat if one is due and nothing else was sent. Requires: `receive` was called before.
  /// Errors: timeout, if nothing arrived for twice the heartbeat interval.
  Result<void> tick(SessionTime now) {
    if (now >= silence_ends()) {
      return Error{ErrorCode::timeout, "received nothing from the broker for twice its heartbeat"};
    }
    beat(now);
    return {};
  }
  /// Sends a due heartbeat without checking for silence. For callers that have not read pending input.
  void beat(SessionTime now) {
    if (now >= heartbeat_due() && !has_unsent()) put(session::Heartbeat{}, 0, 0);
  }

  /// Appends a frame to those that wait to be sent.
  template <typename Body>
  void put(const Body& body, std::uint32_t channel, std::uint32_t request) {
    put_bytes(session::encode_frame(body, channel, request));
  }
  /// Appends the bytes of a frame, or the rest of one, to those that wait to be sent.
  void put_bytes(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  /// Sends the waiting frames and then `batches`, if not null, as far as the system accepts them. Errors:
  /// closed, io_error.
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
  /// Returns the broker's welcome. Valid while open.
  [[nodiscard]] const session::Welcome& welcome() const { return welcome_; }
  /// Returns a number for a request, different each time.
  std::uint32_t next_request() {
    if (++request_ == 0) ++request_;
    return request_;
  }
  /// Returns the descriptor to wait for; -1 while closed. It changes with each `begin`.
  [[nodiscard]] int fd() const { return wire_ == nullptr ? -1 : wire_->fd(); }
  /// Returns true if there is something to do when the descriptor is writable.
  [[nodiscard]] bool wants_write() const {
    return wire_ != nullptr && wire_->tells_room_by_writable() &&
           (phase_ == Phase::connecting ? wire_->connects_by_writable() : has_unsent());
  }
  /// Returns true if `send` has something to do as soon as the system accepts more bytes.
  [[nodiscard]] bool has_unsent() const {
    return blocked_ || (phase_ != Phase::closed && out_begin_ < out_.size());
  }
  /// Returns the events to wait for on the descriptor, as poll(2) takes them.
  [[nodiscard]] short wait_events() const {
    if (wants_write()) return static_cast<short>(held_ ? POLLOUT : POLLIN | POLLOUT);
    const bool told_by_reading = has_unsent() && wire_ != nullptr && !wire_->tells_room_by_writable();
    return static_cast<short>(held_ && !told_by_reading ? 0 : POLLIN);
  }
  /// Returns true if the other side has ended the connection after its last bytes. Unknown for ZeroMQ
  /// sockets.
  [[nodiscard]] bool has_hung_up() const { return wire_ != nullptr && wire_->has_hung_up(); }
  /// Returns true if `receive` or `send` has something to do that the descriptor may not show. Check it
  /// before waiting for the descriptor.
  [[nodiscard]] bool pending() const {
    if (phase_ == Phase::closed || phase_ == Phase::connecting) return false;
    return wire_->pending(static_cast<short>((held_ ? 0 : POLLIN) | (has_unsent() ? POLLOUT : 0)));
  }
  /// Returns when `tick` has something to do next.
  [[nodiscard]] SessionTime next_timer() const {
    return has_unsent() ? silence_ends() : std::min(heartbeat_due(), silence_ends());
  }

 private:
  /// Deletes a wire in the process that created it; does nothing in a forked child.
  struct EndAtHome {
    HomeProcess home;
    void operator()(SessionWire* wire) const {
      if (home.is_here()) delete wire;
    }
  };
  using Wire = std::unique_ptr<SessionWire, EndAtHome>;

  static constexpr std::size_t parts_max = 64;
  static constexpr int reads_at_once = 16;
  static constexpr std::size_t ahead_bytes_max = 4 * limits::MiB;

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

  /// Returns false if nothing can be read now.
  [[nodiscard]] bool may_read() {
    if (wire_->pending(POLLIN)) return true;
    pollfd entry{wire_->fd(), POLLIN, 0};
    return ::poll(&entry, 1, 0) > 0;
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
    // continues without shared memory
    if (frame.header.op == Op::error && is_answer_to_share(frame)) return open_now();
    const bool of_greeting = frame.header.op == Op::error || frame.header.op == Op::goodbye;
    if (phase_ == Phase::greeting && !of_greeting) {
      return Error{ErrorCode::invalid_request,
                   "the broker sent " + std::string(rule_of(frame.header.op).name) + " before its welcome"};
    }
    return take(frame);
  }

  Result<void> take_welcome(const SessionFrame& frame) {
    if (phase_ != Phase::greeting || frame.header.request != hello_request_) {
      return Error{ErrorCode::invalid_request, "the broker sent an unexpected welcome"};
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
    // Nothing is sent after this frame until the broker answers it, because the answer decides over which
    // carrier.
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
      return Error{ErrorCode::invalid_request, "the broker shares memory that was not requested"};
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

  /// Silence while a frame is held does not count, because nothing is read then.
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
  std::vector<std::byte> out_;  // the connection's own frames
  std::size_t out_begin_ = 0;   // index of the first byte not sent
  Phase phase_ = Phase::closed;
  SessionTime heard_;
  SessionTime sent_;
  std::uint64_t frames_ = 0;       // taken so far
  std::size_t unheard_bytes_ = 0;  // of an incomplete frame, received since heard_
  std::uint32_t request_ = 0;
  std::uint32_t hello_request_ = 0;
  std::uint32_t share_request_ = 0;  // the unanswered request; 0: none
  bool blocked_ = false;             // the system accepted less than was offered
  bool held_ = false;
  bool was_held_ = false;        // since the last `receive`
  std::vector<std::byte> kept_;  // memory of a held frame that the inbox does not have any more
};

}  // namespace lightq::inline v1
